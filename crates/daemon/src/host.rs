//! The host's capabilities.

use crate::supervisor::{Supervisor, sandbox_to_api};
use api::{BoxState, CgroupVersion, Counts, FabricStatus, HostStatus, Kvm, Owner, Size};
use protocol::fabric::{FabricFacts, SandboxKind};
use std::path::Path;

/// The cgroup version that offers limits of CPU time here.
pub(crate) fn cgroup() -> CgroupVersion {
    let root = Path::new("/sys/fs/cgroup");
    let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|controller| controller == "cpu") {
        CgroupVersion::V2
    } else if root.join("cpu/cpu.cfs_quota_us").exists() || root.join("cpu/cpu.shares").exists() {
        CgroupVersion::V1
    } else {
        CgroupVersion::None
    }
}

/// A line of `/proc/meminfo`, in bytes.
fn memory(text: &str, name: &str) -> Size {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Size(kilobytes.unwrap_or(0) << 10)
}

fn fabric_to_api((owner, facts): &(Option<Owner>, FabricFacts)) -> FabricStatus {
    FabricStatus {
        owner: owner.clone(),
        pid: facts.process,
        version: facts.version.clone(),
        started: facts.started,
    }
}

impl Supervisor {
    /// The status of the daemon and of its host.
    pub fn host(&self) -> Result<HostStatus, crate::OperationError> {
        let facts = self.facts()?;
        let (_, first) = facts.fabrics.first().ok_or(protocol::fabric::FabricError::Disconnected)?;
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let has_vms = first.sandboxes.contains(&SandboxKind::Vm);
        let reason = match has_vms {
            true => None,
            false => Some(match std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
                Ok(_) => "/dev/kvm can be opened, but lacks features that boxes need".to_string(),
                Err(error) => format!("/dev/kvm can't be opened: {error}"),
            }),
        };
        let mut remarks = Vec::new();
        if let Some(reason) = &reason {
            remarks.push(format!("boxes run in processes because {reason}; load the module kvm_intel or kvm_amd, and let the daemon's user open /dev/kvm"));
        }
        if !first.raises_priority {
            remarks.push(
                "a weight above 100 has no effect on boxes in processes; let the launcher raise its limit of priorities (LimitNICE=40)"
                    .to_string(),
            );
        }
        if self.is_draining() {
            remarks.push(
                "the fabric is drained, so it takes no new boxes and starts none; end the draining to use it"
                    .to_string(),
            );
        }
        Ok(HostStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            image: facts.image,
            started: self.started(),
            pid: std::process::id(),
            sandboxes: first.sandboxes.iter().copied().map(sandbox_to_api).collect(),
            kvm: Kvm { usable: has_vms, reason },
            cgroup: cgroup(),
            cores: first.cores,
            workers: facts.fabrics.iter().map(|(_, fabric)| fabric.workers).sum(),
            fabrics: facts.fabrics.iter().map(fabric_to_api).collect(),
            memory: memory(&meminfo, "MemTotal"),
            memory_available: memory(&meminfo, "MemAvailable"),
            counts: facts.counts,
            isolation: first.isolation.clone(),
            remarks,
        })
    }

    /// Counts the boxes, and those of them that run.
    pub(crate) fn count(states: &[BoxState]) -> Counts {
        let running = states.iter().filter(|state| **state == BoxState::Running).count();
        Counts {
            boxes: u32::try_from(states.len()).unwrap_or(u32::MAX),
            running: u32::try_from(running).unwrap_or(u32::MAX),
            ..Counts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_parsed() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   23 kB\nHugePages_Total:       0\n";
        assert_eq!(memory(text, "MemTotal"), Size(24_000_000 << 10));
        assert_eq!((memory(text, "MemAvailable"), memory(text, "None")), (Size(23 << 10), Size(0)));
    }
}
