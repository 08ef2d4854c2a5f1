//! Source text in, IR text out, without Python.

mod errors;
mod fields;
mod functions;
mod loops;
mod parameters;
mod structs;
mod values;

use _native::host::TensorShape;
use _native::lower::{FrontendConfig, ParamBinding, ReturnType, lower_kernel};
use _native::map_host::MapHost;
use aerogel_ir::{Stage, Type, print_function, verify, verify_calls};

fn host() -> MapHost {
    let mut host = MapHost::new();
    host.layout("dense i:8 j:8 { place x: f32 place y: f32 } place n: i32");
    host.tensor_field(
        "v",
        TensorShape::Vector(2),
        "dense i:16 { place a: f32 place b: f32 }",
    );
    host
}

/// The IR of a kernel, or its errors.
fn lower_with(
    mut host: MapHost,
    text: &str,
    params: &[(&str, ParamBinding)],
    result: Option<Type>,
) -> String {
    let text: String = unindent(text);
    let source = host.source_of(&text);
    let params: Vec<(String, ParamBinding)> = params
        .iter()
        .map(|(name, binding)| (name.to_string(), binding.clone()))
        .collect();
    let result = result.map(ReturnType::One);
    let config = FrontendConfig {
        // It brings checks of all arithmetic: here only where assertions are lowered.
        debug: text.contains("assert"),
        ..FrontendConfig::default()
    };
    match lower_kernel(&source, &params, result.as_ref(), &mut host, &config) {
        Ok(lowered) => {
            let (kernel, env) = (
                lowered.module.kernel().expect("a kernel"),
                &lowered.module.env,
            );
            let text = print_function(kernel, env);
            let functions = lowered.module.funcs.values();
            let wrong = functions
                .map(|func| verify(func, env, Stage::Structured))
                .chain([verify_calls(&lowered.module)])
                .find_map(Result::err);
            if let Some(error) = wrong {
                panic!("{error:?}\n{text}");
            }
            text
        }
        Err(error) => error.render(),
    }
}

fn lower(text: &str) -> String {
    lower_with(host(), text, &[], None)
}

fn unindent(text: &str) -> String {
    let text = text.trim_start_matches('\n');
    let indent = text.len() - text.trim_start().len();
    text.lines()
        .map(|line| line.get(indent..).unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}
