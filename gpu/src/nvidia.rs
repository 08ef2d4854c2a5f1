//! NVIDIA's driver, loaded when it is first wanted.
#![expect(unsafe_code, reason = "calls the driver, which is C")]

mod failed;
mod preallocated;

use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::result::{self, DriverError as Failure};
use cudarc::driver::sys::{self, CUresult};

use self::failed::{of, sized};
use self::preallocated::{Pool, SLOT, Staging, StopWord, pool, stop_word};
use crate::driver::{Card, Driver, DriverError, Grid, KernelLaunch};

/// The oldest supported driver version.
const OLDEST: [u32; 2] = [12, 0];
/// The oldest compute capability that code is made for, and the newest.
const ARCHITECTURES: [u32; 2] = [70, 100];
/// Threads that a multiprocessor runs at once, and the usual number of a block's.
const RESIDENT: u32 = 2048;
const USUAL: u32 = 128;
/// So many blocks for each that can run at once, so that uneven ones even out.
const WAVES: u32 = 2;
/// What is committed of reserved addresses has pieces of this size.
const GRAIN: usize = 2 << 20;
/// The first bytes of native code.
const ELF: &[u8] = b"\x7fELF";
/// How long is slept between two looks at a launch that takes its time.
const LOOK: Duration = Duration::from_micros(50);

/// An NVIDIA GPU.
pub(crate) struct NvidiaDriver {
    card: Card,
    ordinal: c_int,
    context: Context,
    stream: Stream,
    stop: StopWord,
    /// The pool that memory is allocated from, if the device has pools.
    pool: Option<Pool>,
    staging: Mutex<Staging>,
    /// Bytes of stack that each thread has beyond the usual.
    stack: Mutex<u64>,
    /// Pieces of memory behind reserved addresses: where they are, how long, and what the driver calls them.
    reserved: Mutex<BTreeMap<u64, Reserved>>,
}

/// While it exists, the thread's current context is the device's; afterwards the previous one: other libraries have
/// their own contexts.
struct Here {
    is_other: bool,
}

impl Here {
    fn enter(context: sys::CUcontext) -> Result<Self, DriverError> {
        let mut before = std::ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { sys::cuCtxGetCurrent(&raw mut before) }
            .result()
            .map_err(of)?;
        let is_other = before != context;
        if is_other {
            // SAFETY: the context lives as long as the process.
            unsafe { sys::cuCtxPushCurrent_v2(context) }
                .result()
                .map_err(of)?;
        }
        Ok(Self { is_other })
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if self.is_other {
            let mut own = std::ptr::null_mut();
            // SAFETY: what was pushed is taken away again, and whoever calls does not use it any more.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut own) };
        }
    }
}

#[derive(Clone, Copy)]
struct Context(sys::CUcontext);
#[derive(Clone, Copy)]
struct Stream(sys::CUstream);
struct Reserved {
    bytes: usize,
    pieces: Vec<(u64, usize, sys::CUmemGenericAllocationHandle)>,
}

// SAFETY: handles of the driver's, which any thread may use.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
// SAFETY: as above.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl NvidiaDriver {
    /// Opens a device by its number; `anew` after it was lost.
    pub(crate) fn open(number: u32, anew: bool) -> Result<Self, DriverError> {
        // SAFETY: looks for a library and loads it; its initialisers are the driver's.
        if !unsafe { sys::is_culib_present() } {
            return Err(DriverError::Missing(
                "libcuda.so.1 cannot be loaded; install NVIDIA's driver, or use arch=ti.cpu"
                    .to_owned(),
            ));
        }
        let version = expect_version()?;
        result::init().map_err(|e| match e.0 {
            CUresult::CUDA_ERROR_NO_DEVICE => DriverError::NoCard(number, 0),
            _ => of(e),
        })?;
        let n = result::device::get_count().map_err(of)? as u32;
        if number >= n {
            return Err(DriverError::NoCard(number, n));
        }
        let ordinal = number as c_int;
        let device = result::device::get(ordinal).map_err(of)?;
        let card = card(device, version)?;
        if anew {
            // An error stays with the context, which the whole process shares: other users of the context have lost
            // their data too.
            // SAFETY: the device exists, and memory of a lost device is not used any more (`Opened::driver`).
            unsafe { sys::cuDevicePrimaryCtxReset_v2(device) }
                .result()
                .map_err(of)?;
        }
        // SAFETY: the device is one; the context stays as long as the process.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(of)?;
        let _here = Here::enter(context)?;
        let [stream, aside] = [stream()?, stream()?];
        Ok(Self {
            pool: pool(device, card.memory)?,
            staging: Mutex::new(Staging::new()?),
            card,
            ordinal,
            context: Context(context),
            stream: Stream(stream),
            stop: stop_word(stream, aside)?,
            stack: Mutex::new(0),
            reserved: Mutex::default(),
        })
    }

    /// Makes the device's context current in this thread, until the result is dropped.
    fn enter(&self) -> Result<Here, DriverError> {
        Here::enter(self.context.0)
    }

    /// Allocates; where there is not enough, what the pool keeps is given back first.
    fn with_what_is_kept<T>(
        &self,
        mut allocate: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match (allocate(), self.pool) {
            (Err(e), Some(Pool(pool))) if e.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                // SAFETY: the stream is one, and so is the pool; what is in use stays.
                unsafe {
                    result::stream::synchronize(self.stream.0)?;
                    sys::cuMemPoolTrimTo(pool, 0).result()?;
                }
                allocate()
            }
            (outcome, _) => outcome,
        }
    }

    fn property(&self) -> sys::CUmemAllocationProp {
        // SAFETY: numbers and a null pointer, which stand for nothing in particular.
        let mut property: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
        property.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        property.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        property.location.id = self.ordinal;
        property
    }

    fn release(&self, address: u64, reserved: &Reserved) {
        for &(at, bytes, handle) in &reserved.pieces {
            // SAFETY: it was mapped here, and nothing runs any more that uses it: `free` waited.
            let _ = unsafe { sys::cuMemUnmap(at, bytes) };
            // SAFETY: the handle is this piece's.
            let _ = unsafe { sys::cuMemRelease(handle) };
        }
        // SAFETY: nothing is mapped there any more.
        let _ = unsafe { sys::cuMemAddressFree(address, reserved.bytes) };
    }
}

/// The driver's version, which must be new enough.
fn expect_version() -> Result<[u32; 2], DriverError> {
    let mut version = 0;
    // SAFETY: writes one number; it may be called before anything else.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(of)?;
    let found = [version as u32 / 1000, version as u32 % 1000 / 10];
    match found < OLDEST {
        true => Err(DriverError::TooOld(found, OLDEST)),
        false => Ok(found),
    }
}

fn card(device: sys::CUdevice, driver: [u32; 2]) -> Result<Card, DriverError> {
    use sys::CUdevice_attribute as A;
    let attribute = |which| {
        // SAFETY: the device is one.
        let value = unsafe { result::device::get_attribute(device, which) };
        value.map(|v| v as u32).map_err(of)
    };
    let name = result::device::get_name(device).map_err(of)?;
    let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let found = 10 * major + minor;
    let [oldest, newest] = ARCHITECTURES;
    if found < oldest {
        return Err(DriverError::OldCard(name, found));
    }
    let processors = attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    // SAFETY: the device is one.
    let memory = unsafe { result::device::total_mem(device) }.map_err(of)? as u64;
    Ok(Card {
        name,
        // Code for an older GPU runs on a newer one.
        sm: [100, 90, 89, 86, 80, 75, 70]
            .into_iter()
            .find(|&sm| sm <= found.min(newest))
            .unwrap_or(oldest),
        blocks: processors * (RESIDENT / USUAL) * WAVES,
        threads: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        memory,
        driver,
    })
}

fn stream() -> Result<sys::CUstream, DriverError> {
    result::stream::create(result::stream::StreamKind::NonBlocking).map_err(of)
}

/// A text as the driver takes it.
fn terminated(ptx: &[u8]) -> Result<CString, DriverError> {
    CString::new(ptx).map_err(|_| DriverError::BadCode("it has a zero in it".to_owned()))
}

/// Adds launches to a graph, each behind the one before.
fn chain(graph: sys::CUgraph, launches: &[KernelLaunch]) -> Result<(), Failure> {
    let mut last = None;
    for KernelLaunch {
        function,
        grid,
        params,
    } in launches
    {
        let mut params: Vec<*mut c_void> = params
            .iter()
            .map(|p| std::ptr::from_ref(p).cast_mut().cast())
            .collect();
        // SAFETY: numbers and null pointers, which stand for nothing in particular.
        let mut node: sys::CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
        node.func = *function as sys::CUfunction;
        (node.gridDimX, node.gridDimY, node.gridDimZ) = (grid.blocks, 1, 1);
        (node.blockDimX, node.blockDimY, node.blockDimZ) = (grid.threads, 1, 1);
        node.sharedMemBytes = grid.shared;
        node.kernelParams = params.as_mut_ptr();
        let behind = last.as_slice().to_vec();
        let mut added = std::ptr::null_mut();
        // SAFETY: the function takes as many parameters of eight bytes, which the driver copies before it returns.
        unsafe {
            sys::cuGraphAddKernelNode_v2(
                &raw mut added,
                graph,
                behind.as_ptr(),
                behind.len(),
                &raw const node,
            )
        }
        .result()?;
        last = Some(added);
    }
    Ok(())
}

impl Driver for NvidiaDriver {
    fn card(&self) -> &Card {
        &self.card
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        let _here = self.enter()?;
        let stream = self.stream.0;
        self.with_what_is_kept(|| match self.pool {
            // SAFETY: the stream is one; the pool is the device's own.
            Some(_) => unsafe { result::malloc_async(stream, bytes as usize) },
            // SAFETY: the context is current.
            None => unsafe { result::malloc_sync(bytes as usize) },
        })
        .map_err(sized(bytes))
    }

    fn reserve(&self, bytes: u64) -> Result<u64, DriverError> {
        let _here = self.enter()?;
        let bytes = (bytes as usize).next_multiple_of(GRAIN);
        let mut address = 0;
        // SAFETY: writes one address.
        unsafe { sys::cuMemAddressReserve(&raw mut address, bytes, GRAIN, 0, 0) }
            .result()
            .map_err(sized(bytes as u64))?;
        let mut all = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(
            address,
            Reserved {
                bytes,
                pieces: Vec::new(),
            },
        );
        Ok(address)
    }

    fn commit(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        let _here = self.enter()?;
        let stream = self.stream.0;
        let mut all = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let range = all
            .iter_mut()
            .find(|(first, range)| (**first..**first + range.bytes as u64).contains(&address));
        let Some((_, range)) = range else {
            return Err(DriverError::Other(
                "addresses that were not reserved".to_owned(),
            ));
        };
        let (property, size) = (self.property(), bytes as usize);
        let mut handle = 0;
        // SAFETY: creates memory, maps it into reserved addresses that have none, and makes it accessible to the device.
        unsafe {
            self.with_what_is_kept(|| {
                sys::cuMemCreate(&raw mut handle, size, &raw const property, 0).result()
            })
            .map_err(sized(bytes))?;
            if let Err(e) = sys::cuMemMap(address, size, 0, handle, 0).result() {
                let _ = sys::cuMemRelease(handle);
                return Err(of(e));
            }
            let access = sys::CUmemAccessDesc {
                location: property.location,
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            range.pieces.push((address, size, handle));
            sys::cuMemSetAccess(address, size, &raw const access, 1)
                .result()
                .map_err(of)?;
            result::memset_d8_async(address, 0, size, stream).map_err(of)
        }
    }

    fn free(&self, address: u64) {
        let Ok(_here) = self.enter() else { return };
        let stream = self.stream.0;
        let mut all = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(range) = all.remove(&address) {
            // SAFETY: the stream is one.
            let _ = unsafe { result::stream::synchronize(stream) };
            return self.release(address, &range);
        }
        let given_back = match self.pool {
            // SAFETY: it was allocated on this stream.
            Some(_) => unsafe { result::free_async(address, stream) },
            // SAFETY: it was allocated so, and the driver waits for who uses it.
            None => unsafe { result::free_sync(address) },
        };
        if let Err(e) = given_back {
            tracing::debug!("memory of the device cannot be freed: {}", of(e));
        }
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        // The driver takes no copy of nothing.
        if from.is_empty() {
            return Ok(());
        }
        let _here = self.enter()?;
        let stream = self.stream.0;
        if from.len() <= SLOT {
            let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
            return staging.write(to, from, stream).map_err(of);
        }
        // SAFETY: the caller has allocated the bytes; the source is pageable, so it has been read when this returns.
        unsafe { result::memcpy_htod_async(to, from, stream) }.map_err(of)
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        if to.is_empty() {
            return Ok(());
        }
        let _here = self.enter()?;
        let stream = self.stream.0;
        // SAFETY: the caller has allocated the bytes; the copy is complete before the slice is returned.
        unsafe { result::memcpy_dtoh_async(to, from, stream) }.map_err(of)?;
        // SAFETY: the stream is one.
        unsafe { result::stream::synchronize(stream) }.map_err(of)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        let _here = self.enter()?;
        let stream = self.stream.0;
        // SAFETY: the caller has allocated the bytes, which are disjoint.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) }.map_err(of)
    }

    fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        let _here = self.enter()?;
        let stream = self.stream.0;
        // SAFETY: the caller has allocated the bytes.
        unsafe { result::memset_d8_async(address, value, bytes as usize, stream) }.map_err(of)
    }

    fn assemble(&self, ptx: &str) -> Result<Vec<u8>, DriverError> {
        let _here = self.enter()?;
        let text = terminated(ptx.as_bytes())?;
        let mut link = std::ptr::null_mut();
        // SAFETY: writes one handle; there are no options.
        unsafe {
            sys::cuLinkCreate_v2(0, std::ptr::null_mut(), std::ptr::null_mut(), &raw mut link)
        }
        .result()
        .map_err(of)?;
        let (mut code, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the text ends with a zero, and is as long as is said; what is made belongs to the handle.
        let made = unsafe {
            sys::cuLinkAddData_v2(
                link,
                sys::CUjitInputType::CU_JIT_INPUT_PTX,
                text.as_ptr().cast_mut().cast(),
                text.as_bytes_with_nul().len(),
                c"kernel".as_ptr(),
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
            .result()
            .and_then(|()| sys::cuLinkComplete(link, &raw mut code, &raw mut bytes).result())
        };
        // SAFETY: the driver says where the code is, and how long.
        let made = made.map(|()| unsafe {
            std::slice::from_raw_parts(code.cast_const().cast::<u8>(), bytes).to_vec()
        });
        // SAFETY: the code was copied.
        let _ = unsafe { sys::cuLinkDestroy(link) };
        made.map_err(of)
    }

    fn load(&self, code: &[u8]) -> Result<u64, DriverError> {
        let _here = self.enter()?;
        let module = match code.starts_with(ELF) {
            // SAFETY: the driver knows from what it has made itself how long it is.
            true => unsafe { result::module::load_data(code.as_ptr().cast()) },
            false => {
                let text = terminated(code)?;
                // SAFETY: the text ends with a zero.
                unsafe { result::module::load_data(text.as_ptr().cast()) }
            }
        };
        Ok(module.map_err(of)? as u64)
    }

    fn set_stack(&self, bytes: u64) -> Result<(), DriverError> {
        let _here = self.enter()?;
        let mut stack = self.stack.lock().unwrap_or_else(PoisonError::into_inner);
        if *stack < bytes {
            let limit = sys::CUlimit::CU_LIMIT_STACK_SIZE;
            // SAFETY: sets a number of the context.
            unsafe { sys::cuCtxSetLimit(limit, bytes as usize) }
                .result()
                .map_err(sized(bytes))?;
            *stack = bytes;
        }
        Ok(())
    }

    fn unload(&self, module: u64) {
        if let Ok(_here) = self.enter() {
            let stream = self.stream.0;
            // SAFETY: the stream is one.
            let _ = unsafe { result::stream::synchronize(stream) };
            // SAFETY: the number is what `load` gave, and nothing of it runs any more.
            let _ = unsafe { result::module::unload(module as sys::CUmodule) };
        }
    }

    fn function(&self, module: u64, name: &str) -> Result<u64, DriverError> {
        let _here = self.enter()?;
        let missing = || DriverError::NoFunction(name.to_owned());
        let symbol = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the number is what `load` gave.
        let function = unsafe { result::module::get_function(module as sys::CUmodule, symbol) };
        match function {
            Ok(function) => Ok(function as u64),
            Err(e) if e.0 == CUresult::CUDA_ERROR_NOT_FOUND => Err(missing()),
            Err(e) => Err(of(e)),
        }
    }

    fn launch(&self, function: u64, grid: Grid, params: &[u64]) -> Result<(), DriverError> {
        let _here = self.enter()?;
        let stream = self.stream.0;
        let mut params: Vec<*mut c_void> = params
            .iter()
            .map(|p| std::ptr::from_ref(p).cast_mut().cast())
            .collect();
        // SAFETY: the function takes as many parameters of eight bytes, which the driver copies before it returns.
        unsafe {
            result::launch_kernel(
                function as sys::CUfunction,
                (grid.blocks, 1, 1),
                (grid.threads, 1, 1),
                grid.shared,
                stream,
                &mut params,
            )
        }
        .map_err(of)
    }

    fn graph(&self, launches: &[KernelLaunch]) -> Result<u64, DriverError> {
        let _here = self.enter()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { sys::cuGraphCreate(&raw mut graph, 0) }
            .result()
            .map_err(of)?;
        let made = chain(graph, launches).and_then(|()| {
            let mut made = std::ptr::null_mut();
            // SAFETY: the graph was just made.
            unsafe { sys::cuGraphInstantiateWithFlags(&raw mut made, graph, 0) }.result()?;
            Ok(made as u64)
        });
        // SAFETY: what was made of it does not need it any more.
        let _ = unsafe { sys::cuGraphDestroy(graph) };
        made.map_err(of)
    }

    fn launch_graph(&self, graph: u64) -> Result<(), DriverError> {
        let _here = self.enter()?;
        let stream = self.stream.0;
        // SAFETY: the number is what `graph` gave.
        unsafe { sys::cuGraphLaunch(graph as sys::CUgraphExec, stream) }
            .result()
            .map_err(of)
    }

    fn drop_graph(&self, graph: u64) {
        if let Ok(_here) = self.enter() {
            // SAFETY: the number is what `graph` gave; the driver keeps what still runs.
            let _ = unsafe { sys::cuGraphExecDestroy(graph as sys::CUgraphExec) };
        }
    }

    fn mark(&self) -> Result<u64, DriverError> {
        let _here = self.enter()?;
        let stream = self.stream.0;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(of)?;
        // SAFETY: both were made in this context.
        unsafe { result::event::record(event, stream) }.map_err(of)?;
        Ok(event as u64)
    }

    fn between(&self, first: u64, last: u64) -> Result<Duration, DriverError> {
        let _here = self.enter()?;
        let [first, last] = [first, last].map(|event| event as sys::CUevent);
        // SAFETY: both are what `mark` gave, and nobody uses them afterwards.
        let milliseconds = unsafe {
            let elapsed =
                result::event::synchronize(last).and_then(|()| result::event::elapsed(first, last));
            let _ = result::event::destroy(first);
            let _ = result::event::destroy(last);
            elapsed
        };
        let seconds = milliseconds.map_err(of)?.max(0.0) / 1000.0;
        Ok(Duration::from_secs_f32(seconds))
    }

    fn stream(&self) -> u64 {
        self.stream.0 as u64
    }

    fn adopt(&self, address: u64, bytes: u64, stream: Option<u64>) -> Result<(), DriverError> {
        let _here = self.enter()?;
        if bytes > 0 {
            let mut ordinal: c_int = -1;
            // SAFETY: the attribute is a number of this type; any address may be queried.
            unsafe {
                sys::cuPointerGetAttribute(
                    (&raw mut ordinal).cast(),
                    sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                    address,
                )
            }
            .result()
            .map_err(of)?;
            if ordinal != self.ordinal {
                return Err(DriverError::Refused(format!(
                    "the memory is that of cuda:{ordinal}, not of cuda:{}",
                    self.ordinal
                )));
            }
        }
        let Some(stream) = stream else {
            return Ok(());
        };
        // SAFETY: whoever hands over memory says which stream writes there; 1 and 2 are the driver's own numbers for its
        // default streams.
        unsafe { result::stream::synchronize(stream as sys::CUstream) }.map_err(of)
    }

    fn stop_word(&self) -> u64 {
        self.stop.device
    }

    fn wait(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError> {
        let _here = self.enter()?;
        let stream = self.stream.0;
        let (mut looks, mut is_set) = (0_u32, false);
        let outcome = loop {
            // SAFETY: the stream is one.
            match unsafe { sys::cuStreamQuery(stream) } {
                CUresult::CUDA_SUCCESS => break Ok(()),
                CUresult::CUDA_ERROR_NOT_READY => {}
                other => break Err(of(Failure(other))),
            }
            if stop() && !is_set {
                is_set = true;
                // SAFETY: both have eight bytes, and the one is not given back.
                unsafe {
                    sys::cuMemcpyHtoDAsync_v2(
                        self.stop.device,
                        self.stop.one.cast(),
                        8,
                        self.stop.aside,
                    )
                }
                .result()
                .map_err(of)?;
            }
            looks = looks.saturating_add(1);
            // Short launches are looked at all the time.
            match looks {
                0..=2000 => std::hint::spin_loop(),
                _ => std::thread::sleep(LOOK),
            }
        };
        if is_set {
            // SAFETY: the stream is one.
            unsafe { result::stream::synchronize(self.stop.aside) }.map_err(of)?;
        }
        outcome
    }
}
