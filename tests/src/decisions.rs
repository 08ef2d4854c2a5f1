//! Decisions that Python wrote for processors without it: `tests/python/decisions/modules.py` says what the files hold.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use aerogel_base::Scalar;
use aerogel_ir::{Module, ParamType, parse_module};
use aerogel_runtime::buffer::Buffer;
use aerogel_runtime::device::LoadedKernel;
use aerogel_runtime::launch::{Args, Launch};

/// A kernel, its arguments, and what NumPy decides.
pub struct Case {
    /// The kernel as the frontend made it.
    pub module: Module,
    arguments: Vec<Argument>,
}

enum Argument {
    Scalar(f64),
    Array {
        extents: Vec<usize>,
        before: Vec<u8>,
        /// What the launch leaves behind, if it writes to the array.
        after: Option<Vec<u8>>,
    },
}

/// The numbers of the cases in a folder, in order.
///
/// # Panics
/// If it cannot be read.
pub fn numbers(folder: &Path) -> Vec<u64> {
    let files = fs::read_dir(folder).expect("a folder");
    let mut numbers: Vec<u64> = files
        .filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".case")?.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

impl Case {
    /// Reads case `number` of a folder.
    ///
    /// # Panics
    /// If it is not there, or another version wrote it.
    pub fn read(folder: &Path, number: u64) -> Self {
        let text = |ending: &str| {
            fs::read_to_string(folder.join(format!("{number}.{ending}"))).expect("a file")
        };
        let module = parse_module(&text("air")).unwrap_or_else(|e| panic!("{number}: {e}"));
        let arguments = text("case").lines().map(argument).collect();
        Self { module, arguments }
    }

    /// Launches a kernel made of the module: the first decision that differs from NumPy's, by its place in memory, as it
    /// is and as it should be.
    ///
    /// # Panics
    /// If the kernel does not take the arguments.
    pub fn first_difference(&self, kernel: &dyn LoadedKernel) -> Option<(usize, i32, i32)> {
        let params = &self.module.kernel().expect("a kernel").params;
        let buffers: Vec<Option<Buffer>> = self.arguments.iter().map(Argument::buffer).collect();
        let mut args = Args::new();
        for ((param, argument), buffer) in params.iter().zip(&self.arguments).zip(&buffers) {
            match (param.ty, argument, buffer) {
                (ParamType::Value(ty), Argument::Scalar(value), _) => {
                    let ty = ty.scalar().expect("a scalar");
                    args.scalar(Scalar::float(ty, *value).slot());
                }
                (ParamType::Array { .. }, Argument::Array { extents, .. }, Some(buffer)) => {
                    let cell = buffer.len() / extents.iter().product::<usize>();
                    args.array(buffer, extents, cell).expect("it fits");
                }
                _ => panic!("other parameters than arguments"),
            }
        }
        let printed = Mutex::new(String::new());
        let launched = kernel.launch(Launch {
            args: &args,
            roots: &[],
            results: &mut [],
            sink: &printed,
            seed: 0,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        });
        assert!(launched.is_ok(), "a kernel that only computes has failed");
        let written = self.arguments.iter().zip(&buffers);
        written
            .filter_map(|(argument, buffer)| argument.first_difference(buffer.as_ref()?))
            .next()
    }
}

impl Argument {
    fn buffer(&self) -> Option<Buffer> {
        let Self::Array { before, .. } = self else {
            return None;
        };
        let buffer = Buffer::zeroed(before.len()).expect("memory");
        buffer.write(0, before).expect("inside");
        Some(buffer)
    }

    fn first_difference(&self, buffer: &Buffer) -> Option<(usize, i32, i32)> {
        let Self::Array {
            after: Some(after), ..
        } = self
        else {
            return None;
        };
        let mut found = vec![0; after.len()];
        buffer.read(0, &mut found).expect("inside");
        let integers = |bytes: &[u8]| -> Vec<i32> {
            let words = bytes.chunks_exact(4);
            words
                .map(|w| i32::from_le_bytes([w[0], w[1], w[2], w[3]]))
                .collect()
        };
        let pairs = integers(&found).into_iter().zip(integers(after));
        let mut pairs = pairs.enumerate().map(|(k, (got, right))| (k, got, right));
        pairs.find(|(_, got, right)| got != right)
    }
}

fn argument(line: &str) -> Argument {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["scalar", bits] => {
            Argument::Scalar(f64::from_bits(u64::from_str_radix(bits, 16).expect("bits")))
        }
        ["array" | "out", extents, before, ref after @ ..] => Argument::Array {
            extents: extents
                .split('x')
                .map(|n| n.parse().expect("an extent"))
                .collect(),
            before: bytes(before),
            after: after.first().map(|text| bytes(text)),
        },
        _ => panic!("neither a scalar nor an array: {line}"),
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|k| u8::from_str_radix(&text[k..k + 2], 16).expect("two digits"))
        .collect()
}
