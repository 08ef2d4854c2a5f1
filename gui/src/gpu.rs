//! The device that draws: one for the process, created when a picture is first needed.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wgpu::{
    Adapter, Backends, Device, DeviceDescriptor, Instance, InstanceDescriptor, PowerPreference,
    Queue, RequestAdapterOptions,
};

use crate::pipelines::Pipelines;

/// Why nothing can be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The device, with what does not change from picture to picture.
pub(crate) struct Gpu {
    pub(crate) instance: Instance,
    pub(crate) adapter: Adapter,
    pub(crate) device: Device,
    pub(crate) queue: Queue,
    pub(crate) pipelines: Pipelines,
    /// What the driver last complained of.
    complaint: Arc<Mutex<Option<String>>>,
}

static GPU: OnceLock<Result<Gpu, Failure>> = OnceLock::new();

impl Gpu {
    /// The device.
    ///
    /// # Errors
    /// There is no Vulkan, not even a software one.
    pub(crate) fn get() -> Result<&'static Self, Failure> {
        GPU.get_or_init(Self::open).as_ref().map_err(Failure::clone)
    }

    fn open() -> Result<Self, Failure> {
        let mut wanted = InstanceDescriptor::new_without_display_handle();
        wanted.backends = Backends::VULKAN;
        let instance = Instance::new(wanted);
        let options = RequestAdapterOptions {
            power_preference: PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&options)).map_err(|_| {
            Failure(
                "there is no Vulkan: install a graphics driver, or a software one \
                 (Debian and Ubuntu: apt install mesa-vulkan-drivers)"
                    .to_owned(),
            )
        })?;
        let description = DeviceDescriptor {
            label: Some("aerogel"),
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&description))
            .map_err(|e| Failure(format!("Vulkan gives no device: {e}")))?;
        let complaint = Arc::new(Mutex::new(None));
        let kept = complaint.clone();
        // The default ends the process.
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.to_string());
        }));
        let kept = complaint.clone();
        device.set_device_lost_callback(move |_, why| {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(format!("the device is lost: {why}"));
        });
        let pipelines = Pipelines::new(&device);
        Ok(Self {
            instance,
            adapter,
            device,
            queue,
            pipelines,
            complaint,
        })
    }

    /// The driver's error messages since the last call.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let mut complaint = self
            .complaint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        complaint.take().map_or(Ok(()), |what| Err(Failure(what)))
    }
}
