//! What all virtual machines share: KVM itself, the processor's features, the image.

use crate::error::SystemError;
use crate::image::Image;
use crate::memory::{Mapping, PAGE};
use crate::vm::tables;
use boundary::SharedMemory;
use kvm_bindings::{CpuId, KVM_MAX_CPUID_ENTRIES};
use kvm_ioctls::{Cap, Kvm};
use std::sync::Arc;

/// KVM, and an image made ready for it.
pub(crate) struct Hypervisor {
    pub(crate) kvm: Kvm,
    pub(crate) features: CpuId,
    pub(crate) image: Arc<Image>,
    /// The descriptor page, then the image's shared part.
    pub(crate) shared: Mapping,
    pub(crate) shared_size: usize,
}

impl Hypervisor {
    /// Opens KVM. Nothing: there is none, or it lacks what boxes need.
    pub(crate) fn open(image: &Arc<Image>) -> Result<Option<Self>, SystemError> {
        let Ok(kvm) = Kvm::new() else { return Ok(None) };
        let needed = [Cap::ReadonlyMem, Cap::ImmediateExit, Cap::Xcrs, Cap::ExtCpuid];
        if kvm.get_api_version() != 12 || !needed.into_iter().all(|cap| kvm.check_extension(cap)) {
            return Ok(None);
        }
        let features = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(SystemError::kvm("read KVM's features"))?;
        let size = (image.shared_end() - image.shared_start()) as usize + PAGE;
        let shared = Mapping::anonymous(size)?;
        let memory = shared.mapped();
        memory.write(0, &tables::descriptor_page(&image.note));
        for segment in &image.shared {
            memory.write((segment.address - image.shared_start()) as usize + PAGE, &segment.bytes);
        }
        Ok(Some(Self { kvm, features, image: image.clone(), shared, shared_size: size }))
    }

    /// Where the descriptor page lies in a box's addresses.
    pub(crate) fn descriptors(&self) -> u64 {
        self.image.shared_start() - PAGE as u64
    }
}
