//! State that virtual machines share: KVM itself, the processor's features, and the memory of each image.

use crate::cpu;
use crate::error::SystemError;
use crate::image::Image;
use crate::memory::{HUGE_PAGE, Mapping, PAGE};
use crate::vm::tables;
use boundary::SharedMemory;
use kvm_bindings::{CpuId, KVM_MAX_CPUID_ENTRIES, kvm_sregs};
use kvm_ioctls::{Cap, Kvm, VcpuFd};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::OnceLock;

/// The instruction that fills the mapped space after the code: executing it faults.
const BREAKPOINT: u8 = 0xcc;

/// Where a host gets `/dev/kvm`.
#[derive(Debug, Default)]
pub enum KvmDevice {
    /// It opens it.
    #[default]
    Open,
    /// Another process opened it; `None` if it could not.
    Given(Option<OwnedFd>),
}

/// KVM, as all virtual machines use it.
pub(crate) struct Hypervisor {
    pub(crate) kvm: Kvm,
    pub(crate) features: CpuId,
    /// The state of a new processor, which all have in common.
    new_processor: OnceLock<kvm_sregs>,
}

impl Hypervisor {
    /// Opens KVM. Returns `None` if it is missing or lacks what boxes need.
    pub(crate) fn new(device: KvmDevice) -> Result<Option<Self>, SystemError> {
        let kvm = match device {
            KvmDevice::Open => Kvm::new().ok(),
            KvmDevice::Given(None) => None,
            KvmDevice::Given(Some(device)) => {
                // SAFETY: the descriptor is open, and nothing else owns it. With another device, KVM's requests fail.
                Some(unsafe { Kvm::from_raw_fd(device.into_raw_fd()) })
            }
        };
        let Some(kvm) = kvm else { return Ok(None) };
        let needed = [Cap::ReadonlyMem, Cap::ImmediateExit, Cap::Xcrs, Cap::ExtCpuid];
        if kvm.get_api_version() != 12 || !needed.into_iter().all(|cap| kvm.check_extension(cap)) {
            return Ok(None);
        }
        if let Some(khz) = tsc_khz(&kvm) {
            cpu::note_tsc_khz(khz);
        }
        let features = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(SystemError::kvm("read KVM's features"))?;
        Ok(Some(Self { kvm, features, new_processor: OnceLock::new() }))
    }

    /// The state of a new processor, such as this one. It is read once: each request to a processor costs several
    /// microseconds.
    pub(crate) fn new_processor(&self, processor: &VcpuFd) -> Result<kvm_sregs, SystemError> {
        if let Some(state) = self.new_processor.get() {
            return Ok(*state);
        }
        let state = processor.get_sregs().map_err(SystemError::kvm("read a processor's state"))?;
        Ok(*self.new_processor.get_or_init(|| state))
    }
}

/// The memory of an image that all virtual machines with it share.
pub(crate) struct SharedImage {
    /// The descriptor page, followed by the image's shared part. It starts at `address` in a box's addresses; huge pages
    /// are aligned in both.
    pub(crate) memory: Mapping,
    pub(crate) address: u64,
    pub(crate) size: usize,
    /// Address of the descriptor page in a box.
    pub(crate) descriptors: u64,
}

impl SharedImage {
    /// Prepares an image.
    pub(crate) fn new(image: &Image) -> Result<Self, SystemError> {
        // The page before the image's shared part.
        let descriptors = image.shared_start() - PAGE as u64;
        let address = descriptors - descriptors % HUGE_PAGE as u64;
        let size = (image.shared_end() - address) as usize;
        let shared = Mapping::anonymous(size)?;
        shared.prefer_huge_pages();
        let memory = shared.mapped();
        let offset = |at| (at - address) as usize;
        memory.write(offset(descriptors), &tables::descriptor_page(&image.note));
        for (segment, size) in image.shared_parts() {
            memory.write(offset(segment.address), &segment.bytes);
            if segment.execute {
                let rest = size as usize - segment.bytes.len();
                memory.write(offset(segment.address) + segment.bytes.len(), &vec![BREAKPOINT; rest]);
            }
        }
        Ok(Self { memory: shared, address, size, descriptors })
    }
}

/// The rate of the time stamp counter, in kHz, if KVM reports it. A virtual machine has the host's unless it is set.
fn tsc_khz(kvm: &Kvm) -> Option<u32> {
    kvm.check_extension(Cap::GetTscKhz)
        .then(|| kvm.create_vm().ok()?.create_vcpu(0).ok()?.get_tsc_khz().ok())?
}
