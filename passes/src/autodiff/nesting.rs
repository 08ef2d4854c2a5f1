//! Which region contains which instruction.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Function, Inst, Op, Region, Value};

/// Where the regions, instructions and values of a function stand.
pub(crate) struct Nesting {
    /// The instruction that owns a region, and the region in which that stands; none for the body.
    owners: SecondaryMap<Region, Option<(Inst, Region)>>,
    of_value: SecondaryMap<Value, Option<Region>>,
    parallel: SecondaryMap<Region, u32>,
    /// All regions, outer ones first.
    pub(crate) regions: Vec<Region>,
}

impl Nesting {
    pub(crate) fn new(func: &Function) -> Self {
        let mut nesting = Self {
            owners: SecondaryMap::new(),
            of_value: SecondaryMap::new(),
            parallel: SecondaryMap::new(),
            regions: Vec::new(),
        };
        nesting.enter(func, func.body);
        nesting
    }

    fn enter(&mut self, func: &Function, region: Region) {
        self.regions.push(region);
        for &param in &func.regions[region].params {
            self.of_value[param] = Some(region);
        }
        for &inst in &func.regions[region].insts {
            for &result in &func.insts[inst].results {
                self.of_value[result] = Some(region);
            }
            let op = &func[inst];
            let more = matches!(op, Op::Parallel { .. } | Op::ParallelCells { .. });
            for owned in func.owned(inst) {
                self.owners[owned] = Some((inst, region));
                self.parallel[owned] = self.parallel[region] + u32::from(more);
                self.enter(func, owned);
            }
        }
    }

    /// The instruction that owns a region, and where that stands; none for the function's body.
    pub(crate) fn owner(&self, region: Region) -> Option<(Inst, Region)> {
        self.owners[region]
    }

    /// The region that defines a value.
    pub(crate) fn region_of(&self, value: Value) -> Region {
        self.of_value[value].expect("the value is defined in the body")
    }

    /// The region that an instruction stands in, if it is inside another one, and the outermost of those.
    pub(crate) fn around(&self, func: &Function, inst: Inst) -> Option<(Region, Inst)> {
        let all = self.regions.iter().copied();
        let region = all
            .into_iter()
            .find(|&r| func.regions[r].insts.contains(&inst))?;
        let outermost = *self.between(region, func.body).last()?;
        Some((region, outermost))
    }

    /// How many parallel loops are around.
    pub(crate) fn parallel(&self, region: Region) -> u32 {
        self.parallel[region]
    }

    /// The instructions around a region, from the inside, up to one that stands in `outer`.
    pub(crate) fn between(&self, region: Region, outer: Region) -> Vec<Inst> {
        let mut all = Vec::new();
        let mut at = region;
        while at != outer {
            let Some((inst, around)) = self.owners[at] else {
                break;
            };
            all.push(inst);
            at = around;
        }
        all
    }
}
