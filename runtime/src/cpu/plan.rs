//! Running a kernel's tasks on the pool.
//!
//! A plan is made once per kernel; a launch packs pointers and calls functions.
#![expect(unsafe_code, reason = "calls generated code")]

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::device::LoadedObject;
use super::growing::{release, reserve};
use super::sums::{IN_PLACE, Spare};
use super::task::{Means, PlannedTask, Shared, SharedContext};
use super::turns::Turns;
use super::{Pool, STACK};
use crate::abi::{ErrorRecord, HostCalls, LaunchContext};
use crate::buffer::Buffer;
use crate::code::{Atomics, KernelCode, Site, SiteKind, TaskCode};
use crate::device::LoadError;
use crate::interrupt;
use crate::launch::{Args, KernelFailure, Launch, Moment, PrintSink, Refused, Signature};
use crate::races::Races;
use crate::tree::{TreeMemory, Turn};

/// A loaded kernel's tasks, ready to run.
pub(crate) struct LaunchPlan {
    tasks: Vec<PlannedTask>,
    signature: Signature,
    atomics: Atomics,
    temp_bytes: usize,
    sites: Vec<Site>,
    /// Whether accesses are noted, to find data races.
    notes_accesses: bool,
    /// Whether it needs more stack than a thread of the caller's may have.
    is_recursive: bool,
    /// Temporaries of launches that are over.
    idle_temps: Mutex<Vec<Buffer>>,
    _object: Box<dyn LoadedObject>,
}

/// The target of the context's `host`, for the functions of `HostCalls`.
#[repr(C)]
pub(super) struct Host<'a> {
    calls: HostCalls,
    sites: &'a [Site],
    roots: &'a [&'a TreeMemory],
    sink: &'a dyn PrintSink,
    printed: AtomicBool,
    /// The sites of warnings that this launch has come to.
    warned: Mutex<Vec<u32>>,
    /// The accesses of the launch, if they are noted.
    races: Option<Mutex<Races>>,
    turns: &'a Turns,
    /// The bytes of growing storages now, and the most there may be.
    pub(super) reserved: AtomicU64,
    pub(super) most_reserved: u64,
}

impl Host<'_> {
    fn races(&self) -> Option<MutexGuard<'_, Races>> {
        let races = self.races.as_ref()?;
        Some(races.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LaunchPlan {
    /// Looks up the functions of `code` in the object it was loaded as.
    pub(crate) fn new(code: &KernelCode, object: Box<dyn LoadedObject>) -> Result<Self, LoadError> {
        let address = |symbol: &str| {
            object
                .address(symbol)
                .ok_or_else(|| LoadError(format!("no function `{symbol}` in the object")))
        };
        let mut tasks = Vec::new();
        // One thread notes accesses in the order of the iterations, so that the same race is found each time.
        let notes_accesses = code.notes_accesses();
        let one_thread = notes_accesses.then_some(1);
        let shared = Shared {
            one_thread,
            fixed: code.deterministic,
        };
        for (k, task) in code.tasks.iter().enumerate() {
            let mut planned = PlannedTask::new(task, &shared, &address)?;
            let is_in = |other: &TaskCode| other.exchange == task.exchange;
            let is_in_any = |tasks: &[TaskCode]| tasks.iter().any(is_in);
            planned.begins = task.exchange.filter(|_| !is_in_any(&code.tasks[..k]));
            planned.ends = task.exchange.filter(|_| !is_in_any(&code.tasks[k + 1..]));
            tasks.push(planned);
        }
        Ok(Self {
            tasks,
            signature: Signature::of(code),
            atomics: code.atomics.clone(),
            temp_bytes: code.temp_bytes,
            sites: code.sites.clone(),
            notes_accesses,
            is_recursive: code.is_recursive(),
            idle_temps: Mutex::new(Vec::new()),
            _object: object,
        })
    }

    /// The kernel's messages.
    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Runs the tasks in order and waits for each.
    pub(crate) fn launch(
        &self,
        pool: &Pool,
        spare: &Spare,
        launch: Launch<'_>,
    ) -> Result<(), KernelFailure> {
        if !self.is_recursive {
            return self.run(pool, spare, launch);
        }
        thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(STACK);
            match thread.spawn_scoped(scope, || self.run(pool, spare, launch)) {
                Ok(running) => running.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => Err(KernelFailure::Mismatch("no thread for its functions")),
            }
        })
    }

    fn run(&self, pool: &Pool, spare: &Spare, launch: Launch<'_>) -> Result<(), KernelFailure> {
        self.signature.check(&launch)?;
        // Arrays that a device has changed come home.
        for array in launch.args.arrays() {
            array.address().map_err(KernelFailure::Memory)?;
        }
        let mut root_space = [std::ptr::null_mut(); 8];
        let root_vec: Vec<*mut u8>;
        let roots = if launch.roots.len() <= root_space.len() {
            for (slot, root) in root_space.iter_mut().zip(launch.roots) {
                *slot = root.address().map_err(KernelFailure::Memory)?;
            }
            root_space.as_ptr()
        } else {
            let all = launch.roots.iter().map(|root| root.address());
            root_vec = all
                .collect::<Result<_, _>>()
                .map_err(KernelFailure::Memory)?;
            root_vec.as_ptr()
        };
        let temps = self.take_temps()?;
        let (errors, turns) = (ErrorRecord::default(), Turns::default());
        let host = Host {
            calls: HostCalls {
                print,
                grow,
                clear,
                reserve,
                release,
                note,
                turn,
            },
            turns: &turns,
            reserved: AtomicU64::new(0),
            most_reserved: launch.most_reserved,
            sites: &self.sites,
            roots: launch.roots,
            sink: launch.sink,
            printed: AtomicBool::new(false),
            warned: Mutex::default(),
            races: self
                .notes_accesses
                .then(|| Mutex::new(Races::new(launch.args.arrays()))),
        };
        let ctx = SharedContext(LaunchContext {
            args: launch.args.slots().as_ptr(),
            roots,
            temps: match &temps {
                Some(temps) => temps.address().map_err(KernelFailure::Memory)?,
                None => std::ptr::null_mut(),
            },
            results: launch.results.as_mut_ptr(),
            errors: &errors,
            host: std::ptr::from_ref(&host).cast(),
            seed: launch.seed,
            stop: &interrupt::STOP,
            apart: IN_PLACE.as_ptr(),
            part: 0,
        });
        let means = Means {
            pool,
            spare,
            roots: launch.roots,
            args: launch.args,
            ctx,
            errors: &errors,
            turns: &turns,
        };
        let turn = Turn::with_sums(launch.roots, &self.atomics);
        let _active = interrupt::Active::begin();
        let (mut exchanged, mut refused) = (Ok(()), Ok(()));
        for (k, task) in self.tasks.iter().enumerate() {
            exchanged = exchange(launch.args, task.begins, Moment::Before);
            if exchanged.is_err() {
                break;
            }
            refused = task.launch(&means, launch.trace.map(|trace| (trace, k)));
            interrupt::task_ended();
            if refused.is_err()
                || errors.state.load(Ordering::Acquire) != 0
                || interrupt::requested()
            {
                break;
            }
            exchanged = exchange(launch.args, task.ends, Moment::After);
            if exchanged.is_err() {
                break;
            }
        }
        if let Some(temps) = temps {
            self.temps_lock().push(temps);
        }
        if host.printed.load(Ordering::Relaxed) {
            launch.sink.flush();
        }
        let outcome = if interrupt::requested() {
            Err(KernelFailure::Interrupted)
        } else if let Some(race) = host.races().and_then(|mut races| races.found()) {
            Err(KernelFailure::Race(race))
        } else {
            let failed = refused.map_err(KernelFailure::Memory);
            failed.and_then(|()| decode(&errors)).and(exchanged)
        };
        if outcome.is_err() {
            // The tasks that collect what was given back did not run.
            turn.settle();
        }
        outcome
    }

    fn take_temps(&self) -> Result<Option<Buffer>, KernelFailure> {
        if self.temp_bytes == 0 {
            return Ok(None);
        }
        if let Some(temps) = self.temps_lock().pop() {
            return Ok(Some(temps));
        }
        let temps = Buffer::zeroed(self.temp_bytes).map_err(KernelFailure::Memory)?;
        Ok(Some(temps))
    }

    fn temps_lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.idle_temps.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Exchanges between processes before or after a loop.
fn exchange(args: &Args<'_>, number: Option<u32>, moment: Moment) -> Result<(), KernelFailure> {
    match (number, args.exchanges()) {
        (Some(number), Some(exchanges)) => {
            let done = exchanges.run(number, moment);
            done.map_err(|Refused| KernelFailure::Exchange)
        }
        (Some(_), None) => Err(KernelFailure::Mismatch("no exchanges between processes")),
        (None, _) => Ok(()),
    }
}

fn decode(errors: &ErrorRecord) -> Result<(), KernelFailure> {
    if errors.state.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let n_args = errors.n_args.load(Ordering::Relaxed) as usize;
    let args = errors.args.iter().take(n_args);
    Err(KernelFailure::Check {
        site: errors.site.load(Ordering::Relaxed) as usize,
        args: args.map(|arg| arg.load(Ordering::Relaxed)).collect(),
    })
}

/// `HostCalls::print`.
unsafe extern "C" fn print(ctx: *const LaunchContext, site: u32, args: *const u64) {
    // SAFETY: generated code passes on the context it was given.
    let ctx = unsafe { &*ctx };
    // SAFETY: `launch` made `host` point to the first field of a `Host` that outlives the tasks.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    let number = site;
    let Some(site) = host.sites.get(site as usize) else {
        return;
    };
    if site.kind == SiteKind::Warning {
        let mut warned = host.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.contains(&number) {
            return;
        }
        warned.push(number);
    }
    // SAFETY: generated code passes one slot for each value of the site's message.
    let args = unsafe { std::slice::from_raw_parts(args, site.n_args()) };
    host.sink.print(&site.render(args));
    host.printed.store(true, Ordering::Relaxed);
}

/// `HostCalls::note`.
unsafe extern "C" fn note(ctx: *const LaunchContext, site: u32, args: *const u64) {
    // SAFETY: generated code passes on the context it was given.
    let ctx = unsafe { &*ctx };
    // SAFETY: as in `print`.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    let number = site as usize;
    let Some(site) = host.sites.get(number) else {
        return;
    };
    let SiteKind::Note(kind) = site.kind else {
        return;
    };
    // SAFETY: generated code passes one slot for each value of the site.
    let args = unsafe { std::slice::from_raw_parts(args, site.n_args()) };
    let races = host.races();
    if races.is_some_and(|mut races| races.note(number, kind, args)) {
        // SAFETY: the record lives as long as the launch.
        let errors = unsafe { &*ctx.errors };
        // What follows does not begin.
        errors.state.store(2, Ordering::Release);
    }
}

/// `HostCalls::turn`.
unsafe extern "C" fn turn(ctx: *const LaunchContext) {
    // SAFETY: generated code passes on the context it was given.
    let ctx = unsafe { &*ctx };
    // SAFETY: as in `print`.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    host.turns.wait(ctx.part);
}

/// `HostCalls::grow`.
unsafe extern "C" fn grow(ctx: *const LaunchContext, tree: u32, control: u32, element: u32) -> u32 {
    // SAFETY: generated code passes on the context it was given.
    let ctx = unsafe { &*ctx };
    // SAFETY: as in `print`.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    let tree = host.roots.get(tree as usize);
    u32::from(tree.is_some_and(|tree| tree.grow(control, element)))
}

/// `HostCalls::clear`.
unsafe extern "C" fn clear(ctx: *const LaunchContext, tree: u32, address: u64, bytes: u64) {
    // SAFETY: generated code passes on the context it was given.
    let ctx = unsafe { &*ctx };
    // SAFETY: as in `print`.
    let host = unsafe { &*ctx.host.cast::<Host<'_>>() };
    if let Some(tree) = host.roots.get(tree as usize) {
        let start = tree.bytes().addresses().start;
        let offset = (address as usize).wrapping_sub(start);
        let outcome = tree.bytes().zero(offset, bytes as usize);
        debug_assert_eq!(outcome, Ok(()), "elements lie inside their tree");
    }
}

#[cfg(test)]
mod tests {
    use aerogel_base::{ScalarType, Span};

    use super::*;
    use crate::code::{ArgSlot, Bounds, Order, Part};

    struct Functions;

    impl LoadedObject for Functions {
        fn address(&self, symbol: &str) -> Option<usize> {
            match symbol {
                "squares" => Some(squares as *const () as usize),
                "bounds" => Some(bounds as *const () as usize),
                "say" => Some(say as *const () as usize),
                "fail" => Some(fail as *const () as usize),
                _ => None,
            }
        }
    }

    unsafe extern "C" fn squares(ctx: *const LaunchContext, lo: i64, hi: i64) {
        // SAFETY: called through a launch with one array of enough elements.
        let data = unsafe { *(*ctx).args as *mut i64 };
        for i in lo..hi {
            // SAFETY: as above.
            unsafe { *data.offset(i as isize) += i * i };
        }
    }

    unsafe extern "C" fn bounds(ctx: *const LaunchContext, out: *mut i64) {
        // SAFETY: as in `squares`, with two results.
        unsafe {
            *out = 0;
            *out.add(1) = *(*ctx).args.add(1) as i64;
        }
    }

    unsafe extern "C" fn say(ctx: *const LaunchContext, _: i64, _: i64) {
        let args = [(-3_i64) as u64];
        // SAFETY: the site takes one argument.
        unsafe { ((*(*ctx).host).print)(ctx, 0, args.as_ptr()) };
    }

    unsafe extern "C" fn fail(ctx: *const LaunchContext, _: i64, _: i64) {
        // SAFETY: the record lives as long as the launch.
        let errors = unsafe { &*(*ctx).errors };
        if errors
            .state
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            errors.site.store(1, Ordering::Relaxed);
            errors.n_args.store(1, Ordering::Relaxed);
            errors.args[0].store(9, Ordering::Relaxed);
            errors.state.store(2, Ordering::Release);
        }
    }

    fn code(tasks: Vec<TaskCode>, args: Vec<ArgSlot>) -> KernelCode {
        let site = |kind, text: &str| Site {
            kind,
            parts: vec![
                Part::Text(text.to_owned()),
                Part::Value {
                    ty: ScalarType::I32,
                    format: String::new(),
                },
            ],
            span: Span::NONE,
        };
        KernelCode {
            tasks,
            args,
            sites: vec![
                site(SiteKind::Print, "value "),
                site(SiteKind::Check(aerogel_base::AssertKind::Assertion), "bad "),
            ],
            ..KernelCode::default()
        }
    }

    fn launch(
        code: &KernelCode,
        args: &Args<'_>,
        sink: &dyn PrintSink,
    ) -> Result<(), KernelFailure> {
        let plan = LaunchPlan::new(code, Box::new(Functions)).unwrap();
        let pool = Pool::new(3);
        plan.launch(
            &pool,
            &Spare::default(),
            Launch {
                args,
                roots: &[],
                results: &mut [],
                sink,
                seed: 0,
                most_reserved: u64::MAX,
                trace: None,
                later: None,
            },
        )
    }

    fn task(symbol: &str, bounds: Bounds) -> TaskCode {
        TaskCode {
            symbol: symbol.to_owned(),
            bounds,
            cost: 10.0,
            batch: 1,
            max_threads: None,
            block: None,
            in_blocks: false,
            sums: None,
            exchange: None,
            order: Order::Any,
        }
    }

    #[test]
    fn every_iteration_runs_once() {
        let n = 100_003;
        let buffer = Buffer::zeroed(n * 8).unwrap();
        let mut args = Args::new();
        args.array(&buffer, &[n], 8).unwrap();
        let code = code(
            vec![
                task(
                    "squares",
                    Bounds::Computed {
                        symbol: "bounds".to_owned(),
                        n_axes: 1,
                    },
                ),
                task("squares", Bounds::Constant(vec![[0, 7], [3, 10]])),
            ],
            vec![ArgSlot::Pointer, ArgSlot::Extent],
        );
        launch(&code, &args, &Mutex::new(String::new())).unwrap();
        for i in 0..n {
            let times = if i < 49 { 2 } else { 1 };
            let value = buffer.read_scalar(ScalarType::I64, i * 8).unwrap();
            assert_eq!(value.as_i128(), (times * i * i) as i128);
        }
    }

    #[test]
    fn prints_through_the_sink() {
        let sink = Mutex::new(String::new());
        let code = code(vec![task("say", Bounds::Serial)], vec![]);
        launch(&code, &Args::new(), &sink).unwrap();
        assert_eq!(sink.into_inner().unwrap(), "value -3");
    }

    #[test]
    fn a_failed_check_ends_the_launch() {
        let sink = Mutex::new(String::new());
        let code = code(
            vec![
                task("fail", Bounds::Constant(vec![[0, 100_000]])),
                task("say", Bounds::Serial),
            ],
            vec![],
        );
        let failure = launch(&code, &Args::new(), &sink).unwrap_err();
        let KernelFailure::Check { site, args } = failure else {
            panic!("{failure:?}")
        };
        assert_eq!(code.sites[site].render(&args), "bad 9");
        assert_eq!(sink.into_inner().unwrap(), "");
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let code = code(vec![], vec![ArgSlot::Value]);
        let result = launch(&code, &Args::new(), &Mutex::new(String::new()));
        assert!(matches!(result, Err(KernelFailure::Mismatch(_))));
    }
}
