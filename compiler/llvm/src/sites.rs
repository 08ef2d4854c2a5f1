//! Messages of a kernel: templates as the runtime's sites.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{FuncId, Inst, Module, NodeOp, Op, Value, walk};
use aerogel_runtime::{Site, SiteKind};

/// The messages of a module, numbered before its tasks become code apart from each other.
#[derive(Default)]
pub(crate) struct Sites {
    pub(crate) all: Vec<Site>,
    pub(crate) numbers: SecondaryMap<FuncId, SecondaryMap<Inst, u32>>,
}

impl Sites {
    pub(crate) fn of(module: &Module) -> Self {
        let mut sites = Self::default();
        for (id, func) in module.funcs.iter() {
            walk(func, func.body, &mut |func, inst| {
                let (kind, template, args): (_, &str, &[Value]) = match &func[inst] {
                    Op::Print { template, args } => (SiteKind::Print, template, args),
                    Op::Warn { template, args } => (SiteKind::Warning, template, args),
                    Op::Note {
                        kind,
                        template,
                        args,
                    } => (SiteKind::Note(*kind), template, args),
                    Op::Assert {
                        kind,
                        template,
                        args,
                        ..
                    } => (SiteKind::Check(*kind), template, args),
                    Op::Node(NodeOp::Obtain { node, .. } | NodeOp::Extend { node, .. }) => (
                        SiteKind::NoCell {
                            tree: node.tree.as_u32(),
                            node: node.node.as_u32(),
                        },
                        &module.env.out_of_memory(*node),
                        &[],
                    ),
                    _ => return,
                };
                let types: Vec<ScalarType> = args.iter().map(|&arg| func.elem(arg)).collect();
                let span = func.insts[inst].span;
                sites.numbers[id][inst] = sites.all.len() as u32;
                let site = Site::from_template(kind, template, &types, span);
                sites.all.push(site);
            });
        }
        sites
    }
}
