//! Capabilities of this process.

/// A capability, by its bit in the kernel's sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capability {
    /// `CAP_NET_ADMIN`: create and configure devices.
    NetAdmin = 12,
    /// `CAP_IPC_LOCK`: lock memory without limit.
    IpcLock = 14,
}

impl Capability {
    /// Whether `/proc/PID/status` says that the process has it.
    pub(super) fn is_in(self, status: &str) -> bool {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let set = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
        set >> self as u32 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_sets_are_parsed() {
        let status = "Name:\tx\nCapEff:\t0000000000003000\n";
        assert!(Capability::NetAdmin.is_in(status));
        assert!(!Capability::IpcLock.is_in(status) && !Capability::NetAdmin.is_in(""));
    }
}
