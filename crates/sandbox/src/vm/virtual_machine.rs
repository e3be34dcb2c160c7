//! A virtual machine.

use crate::error::{CreateError, SystemError};
use crate::image::REGION_ADDRESS;
use crate::loaded_image::LoadedImage;
use crate::memory::{Arena, PAGE, Part};
use crate::pool::POOL_SIZE;
use crate::settings::Settings;
use crate::shared_region::{RegionPlan, SharedRegion};
use crate::vm::hypervisor::Hypervisor;
use crate::vm::memory::{FIRST_ADDRESS, POOL_ADDRESS, VmMemory};
use crate::vm::{kick, tables};
use boundary::PlatformKind;
use boundary::exit::{CRASH_PORT, EXIT_PORT, IDLE, RING, RING_MAILBOX, STOPPED, TURN_OVER};
use kvm_bindings::{
    KVM_MEM_READONLY, KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET, kvm_device_attr, kvm_dtable, kvm_regs,
    kvm_segment, kvm_sregs, kvm_userspace_memory_region, kvm_xcrs,
};
use kvm_ioctls::{VcpuExit, VcpuFd, VmFd};
use std::os::fd::AsRawFd;
use std::ptr::addr_of_mut;
use std::sync::Arc;

/// Why a virtual machine was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmExit {
    /// It is idle and waits for its doorbell.
    Idle,
    /// It has used its quantum.
    TurnOver,
    /// It signals its host's wake event, and continues when it is entered again.
    Ring,
    /// It wakes the caller at its mailbox, and continues when it is entered again.
    RingMailbox,
    /// It was kicked.
    Kicked,
    /// It stopped on request.
    Stopped,
    /// It cannot continue. The crash page may contain the reason.
    Crashed {
        /// The address of the page fault, if a page fault was the cause.
        address: u64,
    },
}

/// A virtual machine with an image.
pub struct VirtualMachine {
    pub(super) processor: VcpuFd,
    pub(super) ended: bool,
    pub(super) settings: Settings,
    /// The machine's memory slots point into the following fields, so it is dropped before them.
    _vm: VmFd,
    pub(super) private: VmMemory,
    _image: Arc<LoadedImage>,
    pub(crate) region: Arc<SharedRegion>,
}

impl std::fmt::Debug for VirtualMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualMachine").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// `KVM_SET_DEVICE_ATTR`, which the library only offers for other architectures.
const SET_DEVICE_ATTR: libc::c_ulong = 0x4018_aee1;

/// Control registers for 64-bit mode with paging, 256-bit vectors and no system calls.
const CR0: u64 = 0x8005_0033;
const CR4: u64 = 1 << 5 | 1 << 9 | 1 << 10 | 1 << 18;
const EFER: u64 = 1 << 8 | 1 << 10 | 1 << 11;
/// x87, 128-bit and 256-bit state.
const XCR0: u64 = 7;
/// Reserved bit, and I/O privilege level 3: some processors check this, others the task's bitmap.
const RFLAGS: u64 = 2 | 3 << 12;

impl VirtualMachine {
    /// A new machine. `is_copy`: it is about to be filled from a snapshot of a machine with the same settings.
    pub(crate) fn new(
        hypervisor: &Hypervisor,
        image: &Arc<LoadedImage>,
        (settings, is_copy): (&Settings, bool),
        plan: RegionPlan,
        dense: &Arc<Arena>,
        sparse: &Arc<Arena>,
    ) -> Result<Self, CreateError> {
        kick::install()?;
        let shared = image.machines.as_ref().ok_or(CreateError::NoKvm)?;
        let size = (settings.memory, is_copy);
        let (private, region) = VmMemory::new(&image.parsed, shared.descriptors, size, plan, dense, sparse)?;
        if !is_copy {
            region.write_boot_info(settings, PlatformKind::Vm, &private.regions)?;
        }
        let vm = hypervisor.kvm.create_vm().map_err(SystemError::kvm("create a virtual machine"))?;
        let mut slots = vec![
            (shared.address, shared.memory.mapped().pointer(0, shared.size), shared.size, KVM_MEM_READONLY),
            (FIRST_ADDRESS, Some(private.first.address()), private.first.size, 0),
        ];
        if let Some(sparse) = &private.sparse {
            slots.push((private.sparse_address, Some(sparse.address()), sparse.size, 0));
        }
        if let Some(membership) = region.membership() {
            slots.push((POOL_ADDRESS, membership.buffers().pointer(0, POOL_SIZE), POOL_SIZE, 0));
        }
        for (number, (address, memory, size, flags)) in slots.into_iter().enumerate() {
            let memory = memory.ok_or(CreateError::NoMemory)?;
            let slot = kvm_userspace_memory_region {
                slot: number as u32,
                flags,
                guest_phys_addr: address,
                memory_size: size.next_multiple_of(PAGE) as u64,
                userspace_addr: memory.as_ptr() as u64,
            };
            // SAFETY: the memory lives at least as long as the machine, which holds all of it.
            unsafe { vm.set_user_memory_region(slot) }
                .map_err(SystemError::kvm("give a virtual machine its memory"))?;
        }
        let processor = vm.create_vcpu(0).map_err(SystemError::kvm("create a processor"))?;
        let machine = Self {
            processor,
            ended: false,
            settings: settings.clone(),
            _vm: vm,
            private,
            _image: image.clone(),
            region,
        };
        machine.set_system_registers(hypervisor, shared.descriptors)?;
        if !is_copy {
            machine.set_registers(image.parsed.entry)?;
        }
        Ok(machine)
    }

    fn set_system_registers(&self, hypervisor: &Hypervisor, descriptors: u64) -> Result<(), SystemError> {
        let processor = &self.processor;
        processor.set_cpuid2(&hypervisor.features).map_err(SystemError::kvm("set a processor's features"))?;
        let mut system = hypervisor.new_processor(processor)?;
        set_system_registers(&mut system, descriptors, self.private.tables_address);
        processor.set_sregs(&system).map_err(SystemError::kvm("set a processor's state"))?;
        let mut extended = kvm_xcrs { nr_xcrs: 1, ..kvm_xcrs::default() };
        extended.xcrs[0].value = XCR0;
        processor.set_xcrs(&extended).map_err(SystemError::kvm("enable a processor's vectors"))?;
        self.align_clock()
    }

    fn set_registers(&self, entry: u64) -> Result<(), SystemError> {
        let start = kvm_regs {
            rip: entry,
            rsp: self.private.stack_top,
            rdi: REGION_ADDRESS,
            rflags: RFLAGS,
            ..kvm_regs::default()
        };
        self.processor.set_regs(&start).map_err(SystemError::kvm("set a processor's registers"))
    }

    /// Sets the box's time stamp counter to the host's.
    fn align_clock(&self) -> Result<(), SystemError> {
        let mut offset = 0u64;
        let attribute = kvm_device_attr {
            group: KVM_VCPU_TSC_CTRL,
            attr: KVM_VCPU_TSC_OFFSET.into(),
            addr: addr_of_mut!(offset) as u64,
            flags: 0,
        };
        // SAFETY: the request reads the attribute and eight bytes at its address.
        match unsafe { libc::ioctl(self.processor.as_raw_fd(), SET_DEVICE_ATTR, &attribute) } {
            0 => Ok(()),
            _ => Err(SystemError::last("align a processor's clock")),
        }
    }

    /// Runs the box until it leaves or is kicked. Once ended, it stays ended.
    pub fn enter(&mut self) -> VmExit {
        if self.ended {
            return VmExit::Crashed { address: 0 };
        }
        let exit = kick::run(&mut self.processor, |exit| match exit {
            Ok(VcpuExit::IoOut(EXIT_PORT, &[reason])) => match reason {
                IDLE => Some(VmExit::Idle),
                TURN_OVER => Some(VmExit::TurnOver),
                RING => Some(VmExit::Ring),
                RING_MAILBOX => Some(VmExit::RingMailbox),
                STOPPED => Some(VmExit::Stopped),
                _ => None,
            },
            Ok(VcpuExit::Intr) => Some(VmExit::Kicked),
            Ok(VcpuExit::IoOut(CRASH_PORT, _)) | Ok(_) => None,
            Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => Some(VmExit::Kicked),
            Err(_) => None,
        });
        let exit = exit.unwrap_or_else(|| VmExit::Crashed { address: self.fault_address() });
        self.ended = matches!(exit, VmExit::Stopped | VmExit::Crashed { .. });
        exit
    }

    /// Bytes of the machine's private memory. The private part of the first piece shares huge pages with other
    /// machines, and counts in full.
    pub(super) fn private_memory(&self) -> std::io::Result<usize> {
        let sparse = self.private.sparse.as_ref().map_or(Ok(0), Part::resident)?;
        Ok(self.private.dense.size + sparse)
    }

    /// Completes the instruction of the last exit, which otherwise completes at the next entry.
    pub(super) fn complete_exit(&mut self) {
        self.processor.set_kvm_immediate_exit(1);
        // It returns at once, with an error that says so.
        let _ = self.processor.run();
        self.processor.set_kvm_immediate_exit(0);
    }

    /// The address of the last page fault, which the box itself cannot read.
    fn fault_address(&self) -> u64 {
        self.processor.get_sregs().map_or(0, |system| system.cr2)
    }
}

fn set_system_registers(system: &mut kvm_sregs, descriptors: u64, page_tables: u64) {
    let segment = |selector, type_, l, db| kvm_segment {
        base: 0,
        limit: u32::MAX,
        selector,
        type_,
        present: 1,
        dpl: 3,
        db,
        s: 1,
        l,
        g: 1,
        ..kvm_segment::default()
    };
    system.cr0 = CR0;
    system.cr3 = page_tables;
    system.cr4 = CR4;
    system.efer = EFER;
    system.cs = segment(tables::CODE, 11, 1, 0);
    let data = segment(tables::DATA, 3, 0, 1);
    (system.ds, system.es, system.fs, system.gs, system.ss) = (data, data, data, data, data);
    system.ldt = kvm_segment { unusable: 1, ..kvm_segment::default() };
    system.tr = kvm_segment {
        base: descriptors + tables::TSS,
        limit: tables::TSS_LIMIT,
        selector: tables::TASK,
        type_: 11,
        present: 1,
        ..kvm_segment::default()
    };
    let table = |offset, limit| kvm_dtable { base: descriptors + offset, limit, ..kvm_dtable::default() };
    system.gdt = table(tables::GDT, tables::GDT_LIMIT);
    system.idt = table(tables::IDT, tables::IDT_LIMIT);
}
