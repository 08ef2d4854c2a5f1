//! Programs whose sizes of tiles and limits of fusion are chosen by measurement.

use aerogel_compiler::{Arch, CompileError, caught};
use aerogel_tensor::Operand;
use aerogel_tensor::ir::for_sizes;
use aerogel_tensor::passes::Caps;
use aerogel_tensor::run::tune::{TuneError, Tuned, plan, tune};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::compiled::NativeProgram;
use super::native::NativeTensor;
use super::values::{not_compiled, settings_now};
use crate::py::{error, later, program};

impl NativeProgram {
    /// Chooses for calls with inputs of these sizes, or takes what another process has chosen on this machine: a report.
    pub(super) fn tuned(
        &self,
        py: Python<'_>,
        inputs: &[Bound<'_, NativeTensor>],
    ) -> PyResult<String> {
        if let Some(why) = self.not_tunable() {
            return Err(PyTypeError::new_err(format!(
                "a program that {why} cannot be tuned"
            )));
        }
        if !matches!(program::settings_or_begin(py)?.arch, Arch::Cpu) {
            let what = "programs are tuned for processors: call ti.init(arch=ti.cpu) before";
            return Err(error::runtime(py, what));
        }
        later::tell(py)?;
        let inputs = inputs.iter().map(|input| input.get().operand(py));
        let inputs = inputs.collect::<PyResult<Vec<Operand>>>()?;
        let shapes: Vec<_> = inputs.iter().map(|i| (i.ty, &i.shape[..])).collect();
        let sizes = self.sizes_of(&shapes);
        let program = for_sizes(self.traced.program.clone(), &sizes);
        let (plan, report) = settings_now(py, |settings| {
            let (fast_math, products) = (settings.fast_math, settings.options.products);
            let key = format!("{fast_math:?} {products:?}\n{program}");
            let compiler = settings.compiler;
            let known: Option<Caps> = compiler.choice(&key).and_then(|text| text.parse().ok());
            // This takes long, so other threads continue.
            let choose = || match known {
                Some(caps) => plan(&program, caps, settings)
                    .map(|plan| (plan, format!("{caps}, from the offline cache")))
                    .map_err(TuneError::Compile),
                None => tune(&program, &inputs, settings).map(|tuned| {
                    let Tuned {
                        caps,
                        plan,
                        n_measured,
                    } = tuned;
                    compiler.store_choice(&key, &caps.to_string());
                    (
                        plan,
                        format!("{caps}, the fastest of {n_measured} measured"),
                    )
                }),
            };
            let made = py.detach(|| caught(choose));
            let made =
                made.unwrap_or_else(|said| Err(TuneError::Compile(CompileError::Internal(said))));
            made.map_err(|e| match e {
                TuneError::Compile(e) => not_compiled(py, &e),
                TuneError::Run(e) => self.traced.ended(py, &e),
            })
        })?;
        self.keep_plan(sizes, plan.noted(format!("tuned: {report}\n")));
        Ok(report)
    }
}
