//! Static libraries, in the format of GNU `ar`: an index of symbols, then the object files.

/// An object file, and the symbols that it defines.
pub(super) type Member = (Vec<String>, Vec<u8>);

pub(super) fn of(members: &[Member]) -> Vec<u8> {
    let names: String = members
        .iter()
        .flat_map(|(symbols, _)| symbols)
        .map(|symbol| format!("{symbol}\0"))
        .collect();
    let n_symbols: usize = members.iter().map(|(symbols, _)| symbols.len()).sum();
    let index_bytes = 4 + 4 * n_symbols + names.len();
    let mut at = MAGIC.len() + HEADER + index_bytes.next_multiple_of(2);
    let mut index = (n_symbols as u32).to_be_bytes().to_vec();
    for (symbols, object) in members {
        for _ in symbols {
            index.extend((at as u32).to_be_bytes());
        }
        at += HEADER + object.len().next_multiple_of(2);
    }
    index.extend(names.bytes());
    let mut out = MAGIC.to_vec();
    member(&mut out, "/", &index);
    for (k, (_, object)) in members.iter().enumerate() {
        member(&mut out, &format!("{k}.o/"), object);
    }
    out
}

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

fn member(out: &mut Vec<u8>, name: &str, content: &[u8]) {
    // Its name, date, owner, group, mode and size.
    out.extend(
        format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            0,
            644,
            content.len()
        )
        .bytes(),
    );
    out.extend(content);
    if content.len() % 2 == 1 {
        out.push(b'\n');
    }
}
