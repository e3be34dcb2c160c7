//! Converts between what definitions, the protocol and the sandbox library call the kind of a sandbox.

use sandbox::{CreateError, SandboxKind};

/// The sandbox of a box whose definition asks for `wanted`.
///
/// # Errors
///
/// A virtual machine is wanted, and this host has none.
pub(super) fn resolve(wanted: model::Sandbox, has_vms: bool) -> Result<SandboxKind, CreateError> {
    match wanted {
        model::Sandbox::Auto if has_vms => Ok(SandboxKind::Vm),
        model::Sandbox::Auto | model::Sandbox::Process => Ok(SandboxKind::Process),
        model::Sandbox::Vm if has_vms => Ok(SandboxKind::Vm),
        model::Sandbox::Vm => Err(CreateError::NoKvm),
    }
}

/// A sandbox as the protocol names it.
pub(crate) fn reported_sandbox(kind: SandboxKind) -> protocol::fabric::SandboxKind {
    match kind {
        SandboxKind::Vm => protocol::fabric::SandboxKind::Vm,
        SandboxKind::Process => protocol::fabric::SandboxKind::Process,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_the_strongest_available_sandbox() {
        for (wanted, has_vms, expected) in [
            (model::Sandbox::Auto, true, Some(SandboxKind::Vm)),
            (model::Sandbox::Auto, false, Some(SandboxKind::Process)),
            (model::Sandbox::Vm, true, Some(SandboxKind::Vm)),
            (model::Sandbox::Vm, false, None),
            (model::Sandbox::Process, true, Some(SandboxKind::Process)),
        ] {
            assert_eq!(resolve(wanted, has_vms).ok(), expected, "{wanted:?}");
        }
    }
}
