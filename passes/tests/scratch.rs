use aerogel_ir::*;
struct P(Vec<String>);
impl aerogel_passes::Observer for P {
    fn after(&mut self, r: aerogel_passes::PassRecord, f: &Function, e: &Env) -> bool {
        if self.0.contains(&r.name.to_string()) && r.changed {
            println!("=== {}\n{}", r.name, print_function(f, e));
        }
        true
    }
}
#[test]
fn scratch() {
    let text = std::fs::read_to_string(std::env::var("IR").unwrap()).unwrap();
    let mut m = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    let mut p = P(std::env::var("SHOW")
        .unwrap()
        .split(',')
        .map(String::from)
        .collect());
    let o = aerogel_passes::Options {
        verify: true,
        ..Default::default()
    };
    aerogel_passes::run(&mut m, o, &mut p).unwrap_or_else(|e| panic!("{e}"));
    println!(
        "=== end\n{}",
        print_function(m.funcs.values().next().unwrap(), &m.env)
    );
}
