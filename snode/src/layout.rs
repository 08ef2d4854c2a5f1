//! Sizes and offsets: every container aligned for its widest scalar, children in the order of their creation.
//!
//! Large containers side by side in one cell start on cache lines staggered against each other:
//! fields whose sizes are powers of two would otherwise fall on the same cache sets.

use aerogel_base::entity::{PrimaryMap, SecondaryMap};

use crate::build::BuildError;
use crate::merge;
use crate::tree::{MAX_AXES, Node, NodeId, NodeKind, WORD};

const CACHE_LINE: u64 = 64;
/// From this size on a container is aligned to cache lines and staggered.
const LARGE: u64 = 4096;
const LIMIT: u64 = 1 << 62;
/// Cells along an axis that indices of 32 bits, as lists of active cells hold them, can name.
const MOST_ALONG_AXIS: u64 = 1 << 31;

pub(crate) fn lay_out(nodes: &mut PrimaryMap<NodeId, Node>) -> Result<(), BuildError> {
    merge::set_memory_axes(nodes);
    count_cells(nodes)?;
    // Children follow parents, so one backward walk sees every child before its parent.
    for id in nodes.keys().rev() {
        let (mut end, mut align) = (0u64, 1);
        match nodes[id].kind {
            NodeKind::Place(ty) | NodeKind::BitStruct(ty) | NodeKind::QuantArray(ty) => {
                (end, align) = (u64::from(ty.bytes()), u64::from(ty.bytes()));
            }
            _ => {}
        }
        if nodes[id].kind.word().is_some() {
            lay_out_bits(nodes, id);
        }
        let children = match nodes[id].kind.word() {
            // Their bits are the word's.
            Some(_) => Vec::new(),
            None => nodes[id].children.clone(),
        };
        for (k, child) in children.into_iter().enumerate() {
            let (size, child_align) = (nodes[child].container_size(), nodes[child].align);
            end = end.next_multiple_of(child_align);
            if size >= LARGE {
                end += CACHE_LINE * (5 * k as u64 % 16);
            }
            nodes[child].offset_in_cell = end;
            end = end
                .checked_add(size)
                .filter(|&e| e < LIMIT)
                .ok_or(BuildError::TooLarge)?;
            align = align.max(child_align);
        }
        let node = &mut nodes[id];
        if node.n_arenas() > 0 {
            // Elements of an arena begin where the widest scalar may; large ones begin a cache line.
            align = align.max(WORD);
            end = end.max(align);
            if end >= CACHE_LINE {
                align = CACHE_LINE;
            }
        }
        let mut cell_size = end.next_multiple_of(align);
        if let NodeKind::QuantArray(_) = node.kind {
            // All elements lie in the word.
            cell_size = 0;
        }
        cell_size
            .checked_mul(node.n_cells)
            .filter(|&s| s < LIMIT)
            .or((node.kind == NodeKind::Hash).then_some(0))
            .ok_or(BuildError::TooLarge)?;
        node.cell_size = cell_size;
        node.align = match node.kind {
            NodeKind::Pointer | NodeKind::Hash | NodeKind::Dynamic { .. } => WORD,
            NodeKind::Bitmasked => align.max(WORD),
            _ => align,
        };
        if node.container_size() >= LARGE {
            node.align = node.align.max(CACHE_LINE);
        }
    }
    number_controls(nodes);
    Ok(())
}

/// Says where the bits of each component of a word begin. An exponent that is shared precedes the
/// fractions it belongs to.
fn lay_out_bits(nodes: &mut PrimaryMap<NodeId, Node>, word: NodeId) {
    let (mut used, mut exponent_shift) = (0, 0);
    let children = nodes[word].children.clone();
    for (k, &child) in children.iter().enumerate() {
        let next_shares = children
            .get(k + 1)
            .is_some_and(|&n| nodes[n].shares_exponent);
        let node = &mut nodes[child];
        let NodeKind::Bits(quant) = node.kind else {
            unreachable!("a word holds quantised components")
        };
        if next_shares && !node.shares_exponent {
            exponent_shift = used;
            used += quant.exponent_bits();
        }
        let in_group = next_shares || node.shares_exponent;
        node.exponent_shift = exponent_shift;
        node.shift = used;
        used += if in_group { quant.bits } else { quant.width() };
    }
}

fn number_controls(nodes: &mut PrimaryMap<NodeId, Node>) {
    let mut next = 0;
    for id in nodes.keys() {
        nodes[id].first_control = next;
        next += nodes[id].n_controls() as u32;
    }
}

/// Counts the cells of each container, and refuses nodes with more cells in all than can be counted,
/// be they empty.
fn count_cells(nodes: &mut PrimaryMap<NodeId, Node>) -> Result<(), BuildError> {
    let mut in_all: SecondaryMap<NodeId, u64> = SecondaryMap::new();
    for id in nodes.keys() {
        let multiplied = |n: u64| {
            let mut axes = nodes[id].axes.iter();
            axes.try_fold(n, |n, a| n.checked_mul(u64::from(a.extent)))
                .filter(|&n| n < LIMIT)
                .ok_or(BuildError::TooManyCells)
        };
        // Parents precede their children. What lies in a hash node's cells is counted in each.
        let above = nodes[id]
            .parent
            .filter(|&p| nodes[p].kind != NodeKind::Hash);
        in_all[id] = multiplied(above.map_or(1, |p| in_all[p]))?;
        nodes[id].n_cells = multiplied(1)?;
        let (mut extents, mut sparse) = ([1_u64; MAX_AXES], false);
        let mut next = Some(id);
        while let Some(above) = next {
            sparse |= nodes[above].kind.is_sparse();
            for a in &nodes[above].axes {
                let along = &mut extents[a.axis as usize];
                *along = along.saturating_mul(a.extent.into());
            }
            next = nodes[above].parent;
        }
        let long = (0..MAX_AXES as u8).find(|&a| extents[a as usize] > MOST_ALONG_AXIS);
        if let Some(axis) = long.filter(|_| sparse) {
            return Err(BuildError::LongAxis { axis });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Tree, parse_nodes};

    fn tree(text: &str) -> Tree {
        parse_nodes(text).unwrap()
    }

    /// The offset and cell size of every place and node, as C would show them.
    fn facts(text: &str) -> Vec<(String, u64, u64)> {
        tree(text)
            .nodes()
            .map(|(id, n)| (format!("{id}{}", n.name), n.offset_in_cell, n.cell_size))
            .collect()
    }

    #[test]
    fn array_of_structures() {
        // struct Point { int x, y; }; Point points[16];
        let f = facts("dense i:16 { place x: i32, place y: i32 }");
        assert_eq!(f[1], ("S1".into(), 0, 8));
        assert_eq!(f[3], ("S3y".into(), 4, 4));
    }

    #[test]
    fn structure_of_arrays() {
        // int x[16]; int y[16];
        let f = facts("dense i:16 { place x: i32 } dense i:16 { place y: i32 }");
        assert_eq!(f[1].1, 0);
        assert_eq!(f[3].1, 64);
    }

    #[test]
    fn array_of_structures_of_arrays() {
        // struct PointChunk { int x[8]; int y[8]; }; PointChunk points[2];
        let t = tree("dense i:2 { dense i:8 { place x: i32 } dense i:8 { place y: i32 } }");
        let (x, y) = (t.places().next().unwrap().0, t.places().nth(1).unwrap().0);
        assert_eq!(t.byte_offset(x, &[9]), 64 + 4);
        assert_eq!(t.byte_offset(y, &[7]), 32 + 28);
    }

    #[test]
    fn blocks() {
        // struct Block { int x[4][4]; }; Block blocks[2][2];
        let t = tree("dense i:2 j:2 { dense i:4 j:4 { place x: i32 } }");
        let x = t.places().next().unwrap().0;
        assert_eq!(t.shape(x), [8, 8]);
        // x[5][6] lies in block [1][1] at [1][2].
        assert_eq!(t.byte_offset(x, &[5, 6]), 4 * (3 * 16 + 4 + 2));
    }

    #[test]
    fn mixed_widths_are_aligned() {
        let f = facts("dense i:3 { place a: u8, place b: f64, place c: f16 }");
        assert_eq!((f[3].1, f[4].1, f[1].2), (8, 16, 24));
    }

    #[test]
    fn every_cell_has_its_own_bytes() {
        let t = tree(
            "dense j:3 { dense i:5 { place x: i16, dense i:2 k:3 { place y: f64 } } place z: u8 }",
        );
        let mut seen = vec![false; t.byte_size() as usize];
        for (place, ty) in t.places() {
            let shape = t.shape(place);
            let n: u64 = shape.iter().product();
            for linear in 0..n {
                let mut rest = linear;
                let mut index = vec![0i64; shape.len()];
                for (k, &e) in shape.iter().enumerate().rev() {
                    index[k] = (rest % e) as i64;
                    rest /= e;
                }
                let at = t.byte_offset(place, &index) as usize;
                for byte in &mut seen[at..at + ty.bytes() as usize] {
                    assert!(!std::mem::replace(byte, true));
                }
            }
        }
    }

    #[test]
    fn sparse_containers() {
        let t = tree(
            "pointer i:8 j:8 { bitmasked i:5 j:7 { place x: f64, place y: u8 } }, \
             dense i:3 { dynamic j:100 chunk=8 { place z: u8 } }, place s: i32",
        );
        let ids: Vec<_> = t.nodes().map(|(id, _)| id).collect();
        let (pointer, masked, dynamic) = (&t[ids[1]], &t[ids[2]], &t[ids[6]]);
        assert_eq!((masked.cell_size, masked.mask_words()), (16, 2));
        assert_eq!(masked.container_size(), 35 * 16 + 8);
        // The containers of the masked node lie in the arena, in whole cache lines.
        assert_eq!(pointer.container_size(), 64 * 4);
        assert_eq!(pointer.cell_size, (35 * 16 + 8_u64).next_multiple_of(64));
        // Chunks of 8, 16, 32, 64 cells hold 120.
        assert_eq!((dynamic.n_chunks(), dynamic.container_size()), (4, 20));
        assert_eq!(dynamic.element_size(3), 64 * 4);
        assert_eq!(
            ids.iter()
                .map(|&id| t[id].first_control)
                .collect::<Vec<_>>(),
            [0, 0, 1, 2, 2, 2, 2, 6, 6]
        );
        assert_eq!(t.byte_size(), t.root_size().next_multiple_of(128) + 6 * 128);
        assert_eq!(t.sparse_chain(ids[3]), [ids[1], ids[2]]);
        assert!(!t.is_below_sparse(ids[8]));
    }

    #[test]
    fn words_of_bits() {
        let t = tree(
            "dense i:3 { bit_struct bits=32 { place a: qi5/i32, place b: qu8*0.5/f32, place c: qi10^5/f32 }, \
             quant_array j:4 bits=16 { place d: qu4/i32 }, place e: u8 }, \
             bit_struct bits=64 { place x: qi10^6/f32, place y: qi12^6/f32 shared, place z: qi3^5/f32 }",
        );
        let of = |name: &str| {
            let (_, n) = t.nodes().find(|(_, n)| n.name == name).unwrap();
            (n.shift, n.exponent_shift)
        };
        assert_eq!([of("a").0, of("b").0, of("c").0], [0, 5, 13]);
        assert_eq!((of("x"), of("y"), of("z").0), ((6, 0), (16, 0), 28));
        // A word, half a word, and a byte.
        let ids: Vec<_> = t.nodes().map(|(id, _)| id).collect();
        assert_eq!(t[ids[1]].cell_size, 8);
        assert_eq!((t[ids[6]].offset_in_cell, t[ids[8]].offset_in_cell), (4, 6));
        assert_eq!(t.shape(ids[7]), [3, 4]);
        let x = ids[10];
        assert_eq!(t.exponent_group(x), [x, ids[11]]);
        assert_eq!(t.exponent_group(ids[12]), []);
    }

    #[test]
    fn what_does_not_fit_a_word() {
        for (text, message) in [
            (
                "bit_struct bits=24 { }",
                "a word has 8, 16, 32 or 64 bits, not 24",
            ),
            (
                "bit_struct bits=8 { place x: qi5/i32, place y: qi4/i32 }",
                "9 bits do not fit a word of 8",
            ),
            (
                "quant_array i:9 bits=32 { place x: qi4/i32 }",
                "36 bits do not fit a word of 32",
            ),
            (
                "quant_array i:2 bits=32 { place x: qi4/i32, place y: qi4/i32 }",
                "a quant_array node holds one field of numbers, and no nodes",
            ),
            (
                "quant_array i:2 bits=64 { place x: qi4^5/f32 }",
                "a quant_array node holds integers or fixed-point numbers, not floating-point ones",
            ),
            (
                "bit_struct bits=8 { place x: i32 }",
                "only fields of quantised types can be placed in a word of bits",
            ),
            (
                "dense i:2 { place x: qi5/i32 }",
                "a field of a quantised type is placed in ti.BitpackedFields or in a quant_array node",
            ),
            (
                "bit_struct bits=32 { place x: qi5^5/f32, place y: qi5^6/f32 shared }",
                "only floating-point numbers with as many bits of exponent can share it",
            ),
            (
                "bit_struct bits=32 { dense i:2 { } }",
                "a quant_array node holds one field of numbers, and no nodes",
            ),
        ] {
            assert_eq!(parse_nodes(text).unwrap_err().0, message);
        }
    }

    #[test]
    fn alignment_of_cells() {
        let align = |text: &str, node: usize| {
            let t = tree(text);
            let id = t.nodes().nth(node).unwrap().0;
            t.cell_align(id)
        };
        let v = "place x: f32, place y: f32, place z: f32, place m: f32";
        assert_eq!(align(&format!("dense i:5 {{ {v} }}"), 1), 16);
        assert_eq!(
            align(&format!("pointer i:5 {{ dense i:2 {{ {v} }} }}"), 2),
            16
        );
        assert_eq!(align(&format!("place k: i64, dense i:5 {{ {v} }}"), 2), 8);
        assert_eq!(
            align("dense i:5 { place x: f32, place y: f32, place z: f32 }", 1),
            4
        );
    }

    #[test]
    fn too_many_cells() {
        let bytes = "the layout is larger than 2^62 bytes";
        let cells = "a node has 2^62 cells or more";
        let axis =
            "axis 0 of a sparse node has more than 2^31 cells: indices are numbers of 32 bits";
        for (text, message) in [
            ("dense i:2147483648 j:2147483647 { place x: f64 }", bytes),
            ("hash i:2147483648 j:2147483647 { }", "none"),
            ("hash i:2147483648 j:2147483648 { }", cells),
            ("dense i:2147483648 { hash j:2147483648 { } }", cells),
            (
                "hash i:1048576 j:1048576 k:1048576 { dense i:8 j:8 k:8 { place x: f32 } }",
                "none",
            ),
            ("dense i:65536 { hash i:65536 { } }", axis),
            ("dense i:2147483649 { place x: u1 }", "none"),
            ("dense i:2147483649 { bitmasked j:2 { place x: u1 } }", axis),
        ] {
            let outcome = parse_nodes(text).map_err(|e| e.0);
            assert_eq!(outcome.err().unwrap_or("none".into()), message, "{text}");
        }
    }

    #[test]
    fn tables_of_hash_nodes() {
        let node = |text: &str| {
            let tree = tree(text);
            let id = tree.nodes().nth(1).unwrap().0;
            (tree[id].clone(), tree.byte_size())
        };
        let (hash, size) = node("hash i:1048576 j:1048576 { place x: f32 }");
        // A word names the first table; cells and tables have a control block each.
        assert_eq!((hash.container_size(), size), (4, 128 + 2 * 128));
        assert_eq!(hash.n_digits(), 10);
        let digits: Vec<u64> = hash.digits(0x12_3456_789a).collect();
        assert_eq!(digits, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let n_digits = |text: &str| node(text).0.n_digits();
        assert_eq!(n_digits("hash i:1 { place x: f32 }"), 1);
        assert_eq!(n_digits("hash i:16 { place x: f32 }"), 1);
        assert_eq!(n_digits("hash i:17 { place x: f32 }"), 2);
    }
}
