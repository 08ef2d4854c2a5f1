//! NVIDIA GPUs, through PTX.

use super::Target;

/// A GPU of compute capability `sm / 10`.
pub fn nvptx(sm: u32) -> Target {
    let ptx = match sm {
        // Drivers that are new enough for Aerogel accept it for old GPUs too, and their original version lacks `activemask`.
        ..86 => "+ptx70",
        // LLVM ends the process if the PTX version is older than the GPU.
        86..100 => "+ptx80",
        _ => "+ptx86",
    };
    Target {
        triple: "nvptx64-nvidia-cuda".to_owned(),
        cpu: format!("sm_{sm}"),
        features: ptx.to_owned(),
        vector_width: None,
        lanes: None,
        fused: true,
        halves: true,
        widest_swap: 8,
        // `ptx_kernel`
        task_convention: 71,
        grid: true,
        intrinsics: match sm {
            ..80 => &INTRINSICS[2..],
            _ => INTRINSICS,
        },
        position_independent: false,
        separator: "$",
    }
}

const INTRINSICS: &[&str] = &[
    // Not before sm_80.
    "llvm.nvvm.redux.sync.or",
    "llvm.nvvm.redux.sync.umax",
    "llvm.nvvm.read.ptx.sreg.tid.x",
    "llvm.nvvm.read.ptx.sreg.ntid.x",
    "llvm.nvvm.read.ptx.sreg.ctaid.x",
    "llvm.nvvm.read.ptx.sreg.nctaid.x",
    "llvm.nvvm.activemask",
    "llvm.nvvm.isspacep.local",
    "llvm.nvvm.shfl.sync.bfly.i32",
    "llvm.nvvm.shfl.sync.idx.i32",
    "llvm.nvvm.shfl.sync.up.i32",
    "llvm.nvvm.shfl.sync.down.i32",
    "llvm.nvvm.barrier.cta.sync.aligned.all",
    "llvm.nvvm.barrier.cta.red.and.aligned.all",
    "llvm.nvvm.barrier.cta.red.or.aligned.all",
    "llvm.nvvm.barrier.cta.red.popc.aligned.all",
    "llvm.nvvm.bar.warp.sync",
    "llvm.nvvm.membar.cta",
    "llvm.nvvm.membar.gl",
    "llvm.nvvm.vote.ballot.sync",
    "llvm.nvvm.vote.all.sync",
    "llvm.nvvm.vote.any.sync",
    "llvm.nvvm.vote.uni.sync",
    "llvm.nvvm.match.any.sync.i32",
    "llvm.nvvm.match.any.sync.i64",
    "llvm.nvvm.match.all.sync.i32p",
    "llvm.nvvm.match.all.sync.i64p",
];
