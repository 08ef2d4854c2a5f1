//! Trees as text: `dense i:4 j:8 { place x: f32, place y: f32 }`.

use std::fmt;

use aerogel_base::ScalarType;

use crate::build::TreeBuilder;
use crate::quant::QuantType;
use crate::tree::{NodeId, NodeKind, Tree};

/// Why a tree's text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(
    /// The message.
    pub String,
);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn axis_name(axis: u8) -> String {
    b"ijkl"
        .get(axis as usize)
        .map_or_else(|| format!("a{axis}"), |&c| (c as char).to_string())
}

fn axis_of(name: &str) -> Option<u8> {
    match name {
        "i" => Some(0),
        "j" => Some(1),
        "k" => Some(2),
        "l" => Some(3),
        _ => name.strip_prefix('a')?.parse().ok(),
    }
}

impl fmt::Display for Tree {
    /// The nodes below the root.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn children(tree: &Tree, node: NodeId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for (k, &child) in tree[node].children.iter().enumerate() {
                let n = &tree[child];
                f.write_str(if k > 0 { ", " } else { "" })?;
                match (n.kind, n.kind.name()) {
                    (NodeKind::Place(ty), _) => write!(f, "place {}: {ty}", n.name)?,
                    (NodeKind::Bits(quant), _) => {
                        let shared = if n.shares_exponent { " shared" } else { "" };
                        write!(f, "place {}: {quant}{shared}", n.name)?;
                    }
                    (kind, name) => {
                        write!(f, "{} ", name.unwrap_or("root"))?;
                        for a in &n.divides {
                            write!(f, "{}:{} ", axis_name(a.axis), a.extent)?;
                        }
                        if let NodeKind::Dynamic { chunk } = kind {
                            write!(f, "chunk={chunk} ")?;
                        }
                        if let Some(word) = kind.word() {
                            write!(f, "bits={} ", word.bits())?;
                        }
                        f.write_str(if n.merged { "merged " } else { "" })?;
                        f.write_str("{ ")?;
                        children(tree, child, f)?;
                        f.write_str(" }")?;
                    }
                }
            }
            Ok(())
        }
        children(self, Tree::ROOT, f)
    }
}

/// Reads the text that a tree prints.
pub fn parse_nodes(text: &str) -> Result<Tree, ParseError> {
    let spaced = text
        .replace('{', " { ")
        .replace('}', " } ")
        .replace(',', " ")
        .replace(": ", ":");
    let mut words = spaced.split_whitespace().peekable();
    let mut builder = TreeBuilder::default();
    let (mut open, mut merged) = (vec![Tree::ROOT], Vec::new());
    let err = |what: String| ParseError(what);
    while let Some(word) = words.next() {
        let parent = *open.last().ok_or_else(|| err("unmatched `}`".into()))?;
        match word {
            "}" => {
                open.pop();
            }
            "place" => {
                let (name, ty) = words
                    .next()
                    .and_then(|w| w.split_once(':'))
                    .ok_or_else(|| err("expected `name: type`".into()))?;
                let placed = match (ScalarType::from_name(ty), QuantType::parse(ty)) {
                    (Some(ty), _) => builder.place(parent, ty, name),
                    (None, Ok(quant)) => {
                        let shared = words.next_if_eq(&"shared").is_some();
                        builder.place_bits(parent, quant, shared, name)
                    }
                    (None, Err(_)) => return Err(err(format!("unknown type `{ty}`"))),
                };
                placed.map_err(|e| err(e.to_string()))?;
            }
            "dense" | "bitmasked" | "pointer" | "hash" | "dynamic" | "bit_struct"
            | "quant_array" => {
                let (mut axes, mut bits, mut merges) = (Vec::new(), 0, false);
                let mut kind = match word {
                    "dense" => NodeKind::Dense,
                    "bitmasked" => NodeKind::Bitmasked,
                    "pointer" => NodeKind::Pointer,
                    "hash" => NodeKind::Hash,
                    _ => NodeKind::Dynamic { chunk: 1 },
                };
                loop {
                    match words.next() {
                        Some("{") => break,
                        Some("merged") => merges = true,
                        Some(w) if w.starts_with("chunk=") => {
                            let chunk = w["chunk=".len()..].parse();
                            let chunk = chunk.map_err(|_| err(format!("bad chunk size `{w}`")))?;
                            kind = NodeKind::Dynamic { chunk };
                        }
                        Some(w) if w.starts_with("bits=") => {
                            let n = w["bits=".len()..].parse();
                            bits = n.map_err(|_| err(format!("bad number of bits `{w}`")))?;
                        }
                        Some(w) => axes.push(
                            w.split_once(':')
                                .and_then(|(a, e)| Some((axis_of(a)?, e.parse().ok()?)))
                                .ok_or_else(|| {
                                    err(format!("expected `axis:extent`, found `{w}`"))
                                })?,
                        ),
                        None => return Err(err("expected `{`".into())),
                    }
                }
                let node = match word {
                    "bit_struct" => builder.bit_struct(parent, bits),
                    "quant_array" => builder.quant_array(parent, &axes, bits),
                    _ => builder.node(parent, kind, &axes),
                };
                let node = node.map_err(|e| err(e.to_string()))?;
                merged.extend(merges.then_some(node));
                open.push(node);
            }
            w => return Err(err(format!("expected a node, found `{w}`"))),
        }
    }
    if open.len() != 1 {
        return Err(err("missing `}`".into()));
    }
    for node in merged {
        let done = builder.merge(node);
        done.map_err(|e| err(e.to_string()))?;
    }
    builder.finish().map_err(|e| err(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let text = "dense i:2 j:3 { place x: f32, dense j:5 a7:2 { place y: u8 } }, place z: i64";
        assert_eq!(parse_nodes(text).unwrap().to_string(), text);
        let text = "pointer i:4 { bitmasked i:8 { place x: f32 }, dynamic j:64 chunk=16 { place y: i32 } }, hash i:1048576 j:1048576 { place z: f32 }";
        assert_eq!(parse_nodes(text).unwrap().to_string(), text);
    }

    #[test]
    fn words_of_bits() {
        let text = "dense i:4 { bit_struct bits=32 { place x: qi5/i32, place y: qi10^5/f32, place z: qi8^5/f32 shared }, quant_array i:8 bits=64 { place w: qu8*0.25/f32 } }";
        assert_eq!(parse_nodes(text).unwrap().to_string(), text);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            parse_nodes("dense i:0 { }").unwrap_err().0,
            "the size of axis 0 must be at least 1"
        );
        assert_eq!(
            parse_nodes("place x: f33").unwrap_err().0,
            "unknown type `f33`"
        );
        assert_eq!(parse_nodes("dense i:2 {").unwrap_err().0, "missing `}`");
        assert_eq!(
            parse_nodes("dense i:2 { dynamic i:4 chunk=2 { } }")
                .unwrap_err()
                .0,
            "a dynamic node along axis 0, which a node above it divides already"
        );
        assert_eq!(
            parse_nodes("dynamic i:4 chunk=2 { pointer j:2 { } }")
                .unwrap_err()
                .0,
            "only dense nodes and fields can lie below a dynamic node"
        );
    }
}
