//! Texts with a few mistakes, made from good ones: words are left out, repeated, exchanged, and replaced by others.
//!
//! Included by path in tests that must not depend on this crate.

/// Random numbers that a seed repeats (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
    }

    /// A number from 0 that is below another one.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 8) as usize % n.max(1)
    }

    /// One of several.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// A number of the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Numbers at which something ends.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "8",
    "64",
    "2147483647",
    "-2147483648",
    "4294967296",
    "18446744073709551615",
    "1e308",
];

/// The words of a text, with what is between them.
fn words(text: &str) -> Vec<&str> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match in_word(first) {
            true => rest.find(|c| !in_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// One of the good texts with one to three mistakes. `others` are words that the language knows.
pub(crate) fn mutated(samples: &[&str], others: &[&str], random: &mut Random) -> String {
    let mut text = random.pick(samples).to_owned();
    for _ in 0..1 + random.below(3) {
        text = changed(&text, samples, others, random);
    }
    text
}

fn changed(text: &str, samples: &[&str], others: &[&str], random: &mut Random) -> String {
    let all = words(text);
    let lines: Vec<&str> = text.lines().collect();
    if all.len() < 4 || lines.len() < 2 {
        return text.to_owned();
    }
    let is_name = |w: &&str| w.chars().next().is_some_and(char::is_alphanumeric);
    let names: Vec<usize> = (0..all.len()).filter(|&k| is_name(&all[k])).collect();
    let with = |at: usize, word: &str| {
        let mut own = all.clone();
        own[at] = word;
        own.concat()
    };
    let at = random.below(all.len());
    match random.below(11) {
        0 => {
            let mut own = lines;
            own.remove(random.below(own.len()));
            own.join("\n")
        }
        1 => {
            let mut own = lines.clone();
            own.insert(random.below(lines.len()), lines[random.below(lines.len())]);
            own.join("\n")
        }
        2 => {
            let mut own = lines;
            let (a, b) = (random.below(own.len()), random.below(own.len()));
            own.swap(a, b);
            own.join("\n")
        }
        3 => {
            // A line of another text.
            let other: Vec<&str> = random.pick(samples).lines().collect();
            let mut own = lines.clone();
            own.insert(random.below(lines.len()), other[random.below(other.len())]);
            own.join("\n")
        }
        4 => with(at, ""),
        5 => with(at, &format!("{0} {0}", all[at])),
        6 if !names.is_empty() => with(names[random.below(names.len())], random.pick(&NUMBERS)),
        7 if !names.is_empty() => with(names[random.below(names.len())], random.pick(others)),
        8 => {
            // One bracket or sign for another.
            let signs = [
                "(", ")", "[", "]", "{", "}", ":", ",", "=", "-", "*", "\n", "    ", "\u{e9}", "\0",
            ];
            with(at, random.pick(&signs))
        }
        _ if names.len() > 1 => {
            let (a, b) = (random.below(names.len()), random.below(names.len()));
            with(names[a], all[names[b]])
        }
        _ => {
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            text[..ends[random.below(ends.len())]].to_owned()
        }
    }
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    text.unwrap_or_default()
}

/// Tries texts on threads with much stack, one for each half of the seeds; panics with the first texts on which `try_one` does.
pub(crate) fn try_all(seeds: std::ops::Range<u64>, try_one: fn(u64) -> String) {
    let middle = seeds.start + (seeds.end - seeds.start) / 2;
    let parts = [seeds.start..middle, middle..seeds.end].map(|mut part| {
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        let failure = move |seed| {
            std::panic::catch_unwind(move || try_one(seed))
                .err()
                .map(|panic| (seed, said(&*panic)))
        };
        thread
            .spawn(move || part.find_map(failure))
            .expect("a thread")
    });
    let failures = parts.map(|part| part.join().expect("panics are caught"));
    let texts = failures
        .into_iter()
        .flatten()
        .map(|(seed, text)| format!("seed {seed}: {text}"));
    let texts: Vec<String> = texts.collect();
    assert!(texts.is_empty(), "{}", texts.join("\n\n"));
}
