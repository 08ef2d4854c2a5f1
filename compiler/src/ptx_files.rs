//! GPU code in files, as input for NVIDIA's assembler.

use std::hash::{Hash, Hasher};
use std::path::Path;

use aerogel_ir::Module;
use aerogel_llvm::{OptLevel, Texts, target};
use aerogel_runtime::KernelCode;

/// Writes a kernel's code to the folder that `AEROGEL_KEEP_PTX` names, and to `sm_90` and the like in it what the GPUs of the
/// compute capabilities in `AEROGEL_KEEP_PTX_FOR` would get, as in `90,100`.
pub(crate) fn keep(module: &Module, code: &KernelCode, level: OptLevel) {
    let Some(folder) = std::env::var_os("AEROGEL_KEEP_PTX") else {
        return;
    };
    write(Path::new(&folder), code);
    let others = std::env::var("AEROGEL_KEEP_PTX_FOR").unwrap_or_default();
    for sm in others.split(',').filter(|sm| !sm.is_empty()) {
        let Ok(number) = sm.parse() else {
            tracing::warn!("AEROGEL_KEEP_PTX_FOR names `{sm}`, which is no compute capability");
            continue;
        };
        let compiled = aerogel_llvm::compile(module, &target::nvptx(number), level, Texts::Nothing);
        write(&Path::new(&folder).join(format!("sm_{sm}")), &compiled.code);
    }
}

fn write(folder: &Path, code: &KernelCode) {
    if let Err(e) = std::fs::create_dir_all(folder) {
        tracing::warn!("{} cannot be made: {e}", folder.display());
        return;
    }
    for object in &code.objects {
        let mut hasher = std::hash::DefaultHasher::new();
        object.hash(&mut hasher);
        let path = folder.join(format!("{:016x}.ptx", hasher.finish()));
        if let Err(e) = std::fs::write(&path, object) {
            tracing::warn!("{} cannot be written: {e}", path.display());
        }
    }
}
