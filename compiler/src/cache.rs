//! Compiled kernels on disk, found by a hash of their inputs.
//!
//! An entry is one file. Its name is the hash of all that decides what code is made: the module after
//! partial evaluation with the layouts it uses, the options, the machine, and the build of this
//! compiler. Inside, hashes of the key and of the code stand before the code:
//!
//! ```text
//! "aerogel kernel 2\n"  key: 32 bytes  hash of the rest: 32 bytes  device "\n"  KernelCode (postcard)
//! ```
//! What a tuner has chosen for a program is an entry too, with a line of text in place of the code.
//!
//! Files are written under another name and renamed, so that a reader finds a whole one or none;
//! what does not check out is not used, and written again. That guards against damage, not against
//! someone who may write there: loading code is running it. So the folder must belong to the user,
//! and nobody else may write in it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use aerogel_ir::{Module, print_module, walk};
use aerogel_llvm::{OptLevel, Target};
use aerogel_runtime::KernelCode;

use crate::config::Config;

const MAGIC: &[u8] = b"aerogel kernel 2\n";
const ENDING: &str = "kernel";

/// What is removed when the cache grows past its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// Nothing.
    Never,
    /// What other builds of the compiler made.
    Version,
    /// What was not used for the longest time.
    LeastRecentlyUsed,
    /// What was made first.
    FirstInFirstOut,
}

/// Where compiled kernels are cached, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// The folder; it is made if it is not there.
    pub folder: PathBuf,
    /// What is removed.
    pub cleaning: Cleaning,
    /// The size in bytes from which on something is removed.
    pub max_bytes: u64,
    /// Which part of the files is removed then, from 0 to 1.
    pub cleaning_factor: f64,
}

/// A folder of compiled kernels.
pub(crate) struct Cache {
    settings: CacheSettings,
    /// The folder's size, as far as it is known.
    bytes: Mutex<Option<u64>>,
}

/// How the name of a file begins while it is written.
const UNFINISHED: &str = ".writing-";

/// A file is written at once: one that is older belongs to nobody.
const WRITTEN_WITHIN: Duration = Duration::from_secs(600);

/// What code is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(blake3::Hash);

impl Key {
    /// The key of the code of a module at stage `Structured`.
    pub(crate) fn new(
        module: &Module,
        (config, level): (&Config, OptLevel),
        target: &Target,
        device: &str,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        let options = (config.pass_options(), level.0);
        hasher.update(build().as_bytes());
        hasher.update(format!("{options:?} {target:?} {device}\n").as_bytes());
        hasher.update(print_module(module).as_bytes());
        // Messages name the source by numbers of spans.
        for func in module.funcs.values() {
            walk(func, func.body, &mut |func, inst| {
                hasher.update(&func.insts[inst].span.index().to_le_bytes());
            });
        }
        Self(hasher.finalize())
    }

    /// The key of what a tuner chooses for a text, with so many threads.
    pub(crate) fn of_choice(text: &str, target: &Target, n_threads: usize) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("choice\n{}\n{target:?} {n_threads}\n{text}", build()).as_bytes());
        Self(hasher.finalize())
    }
}

/// What made the code: a hash over the compiler's sources, and LLVM.
fn build() -> String {
    format!("{} {}", env!("AEROGEL_BUILD"), aerogel_llvm::version())
}

/// A short name for the build, with which the names of its files begin.
fn build_prefix() -> String {
    blake3::hash(build().as_bytes()).to_hex()[..8].to_owned()
}

impl Cache {
    /// Opens a folder of compiled kernels, and makes it if it is not there.
    ///
    /// # Errors
    /// Why it cannot be used, or must not.
    pub(crate) fn open(settings: CacheSettings) -> Result<Self, String> {
        let folder = &settings.folder;
        let shown = folder.display();
        let mut make = fs::DirBuilder::new();
        make.recursive(true).mode(0o700);
        make.create(folder)
            .map_err(|e| format!("the folder {shown} cannot be made: {e}"))?;
        trusted(folder)?;
        let cache = Self {
            settings,
            bytes: Mutex::new(None),
        };
        cache.remove_unfinished();
        if cache.settings.cleaning == Cleaning::Version {
            cache.remove_of_other_builds();
        }
        Ok(cache)
    }

    /// The cached choice of a tuner, if its file exists and is undamaged.
    pub(crate) fn choice(&self, key: Key) -> Option<String> {
        let (file, bytes) = self.read(key)?;
        let choice = String::from_utf8(body(&bytes, key)?.to_vec()).ok()?;
        self.note_use(key, &file);
        Some(choice)
    }

    /// Caches what a tuner has chosen. A failure is no error: it is measured again next time.
    pub(crate) fn store_choice(&self, key: Key, choice: &str) {
        self.write(key, &entry(choice.as_bytes(), key, "choice of a tuner"));
    }

    fn path(&self, key: Key) -> PathBuf {
        let name = format!("{}-{}.{ENDING}", build_prefix(), key.0.to_hex());
        self.settings.folder.join(name)
    }

    /// The code of a kernel, if it is there and whole.
    pub(crate) fn load(&self, key: Key) -> Option<KernelCode> {
        let (file, bytes) = self.read(key)?;
        let code = postcard::from_bytes(body(&bytes, key)?).ok()?;
        self.note_use(key, &file);
        Some(code)
    }

    /// Marks a file as used now, if those that were not used for long are removed.
    fn note_use(&self, key: Key, file: &File) {
        if self.settings.cleaning == Cleaning::LeastRecentlyUsed
            && let Err(e) = file.set_modified(SystemTime::now())
        {
            let path = self.path(key);
            tracing::debug!("the time of {} cannot be set: {e}", path.display());
        }
    }

    /// The file of a key, and its bytes.
    fn read(&self, key: Key) -> Option<(File, Vec<u8>)> {
        let path = self.path(key);
        // A pipe would be waited for.
        if !trusted(&path).ok()?.is_file() {
            return None;
        }
        let (mut file, mut bytes) = (File::open(&path).ok()?, Vec::new());
        file.read_to_end(&mut bytes).ok()?;
        Some((file, bytes))
    }

    /// Caches the code of a kernel. A failure is no error: the kernel is compiled again next time.
    pub(crate) fn store(&self, key: Key, code: &KernelCode, device: &str) {
        match postcard::to_stdvec(code) {
            Ok(code) => self.write(key, &entry(&code, key, device)),
            Err(e) => tracing::warn!("a compiled kernel cannot be cached: {e}"),
        }
    }

    fn write(&self, key: Key, bytes: &[u8]) {
        let write = || -> io::Result<u64> {
            let mut file = tempfile::Builder::new()
                .prefix(UNFINISHED)
                .tempfile_in(&self.settings.folder)?;
            // Not synced: what a crash of the machine leaves of it has another hash.
            file.write_all(bytes)?;
            file.persist(self.path(key)).map_err(|e| e.error)?;
            Ok(bytes.len() as u64)
        };
        match write() {
            Ok(n) => self.grown_by(n),
            Err(e) => tracing::warn!(
                "a file cannot be cached in {}: {e}",
                self.settings.folder.display()
            ),
        }
    }

    fn grown_by(&self, n: u64) {
        let mut bytes = self.bytes.lock().unwrap_or_else(|e| e.into_inner());
        let total = match *bytes {
            Some(known) => known + n,
            None => self.files().iter().map(|file| file.bytes).sum(),
        };
        *bytes = Some(total);
        if total > self.settings.max_bytes && self.settings.cleaning != Cleaning::Never {
            self.remove_oldest();
            *bytes = None;
        }
    }

    /// Removes what processes that were killed while they wrote have left.
    fn remove_unfinished(&self) {
        let Ok(entries) = fs::read_dir(&self.settings.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let is_ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
            let is_old = entry
                .metadata()
                .and_then(|data| data.modified())
                .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > WRITTEN_WITHIN));
            if is_ours && is_old {
                remove(&entry.path());
            }
        }
    }

    fn remove_of_other_builds(&self) {
        let own = build_prefix();
        for file in self.files() {
            if !file.name.starts_with(&own) {
                remove(&file.path);
            }
        }
    }

    fn remove_oldest(&self) {
        let mut files = self.files();
        files.sort_by_key(|file| file.modified);
        let n = (files.len() as f64 * self.settings.cleaning_factor).ceil();
        for file in files.iter().take(n as usize) {
            remove(&file.path);
        }
    }

    /// The entries. Files that have other names are not the cache's.
    fn files(&self) -> Vec<Entry> {
        let Ok(entries) = fs::read_dir(&self.settings.folder) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let data = entry.metadata().ok()?;
                let path = entry.path();
                (data.is_file() && path.extension()? == ENDING).then_some(Entry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    path,
                    bytes: data.len(),
                    modified: data.modified().ok(),
                })
            })
            .collect()
    }
}

struct Entry {
    name: String,
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

fn remove(path: &Path) {
    if let Err(e) = fs::remove_file(path) {
        tracing::debug!("{} cannot be removed: {e}", path.display());
    }
}

/// A device, empty for the processor, stands there for who lists the files.
fn entry(code: &[u8], key: Key, device: &str) -> Vec<u8> {
    let line = device.replace('\n', " ") + "\n";
    let body = [line.as_bytes(), code].concat();
    let mut bytes = Vec::with_capacity(MAGIC.len() + 64 + body.len());
    bytes.extend(MAGIC);
    bytes.extend(key.0.as_bytes());
    bytes.extend(blake3::hash(&body).as_bytes());
    bytes.extend(body);
    bytes
}

/// What is stored in an entry, if it is whole.
fn body(bytes: &[u8], key: Key) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (of_key, rest) = rest.split_at_checked(32)?;
    let (of_body, body) = rest.split_at_checked(32)?;
    let whole = of_key == key.0.as_bytes() && of_body == blake3::hash(body).as_bytes();
    let line = body.iter().position(|&byte| byte == b'\n')?;
    whole.then_some(&body[line + 1..])
}

/// What is said of a file or folder from which code may be loaded: it is this user's, no link, and
/// nobody else may write it.
fn trusted(path: &Path) -> Result<Metadata, String> {
    let shown = path.display();
    let data = fs::symlink_metadata(path).map_err(|e| format!("{shown}: {e}"))?;
    if data.is_symlink() {
        return Err(format!("{shown} is a link"));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{shown} belongs to another user"));
    }
    if data.permissions().mode() & 0o022 != 0 {
        return Err(format!("others may write in {shown}"));
    }
    Ok(data)
}
