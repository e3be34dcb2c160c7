//! Converts between what the API and what the sandbox library call the kind of a sandbox.

use sandbox::{CreateError, SandboxKind};

/// The sandbox of a box whose definition asks for `wanted`.
///
/// # Errors
///
/// A virtual machine is wanted, and this host has none.
pub(super) fn resolve(wanted: api::Sandbox, has_vms: bool) -> Result<SandboxKind, CreateError> {
    match wanted {
        api::Sandbox::Auto if has_vms => Ok(SandboxKind::Vm),
        api::Sandbox::Auto | api::Sandbox::Process => Ok(SandboxKind::Process),
        api::Sandbox::Vm if has_vms => Ok(SandboxKind::Vm),
        api::Sandbox::Vm => Err(CreateError::NoKvm),
    }
}

/// A sandbox as the API names it.
pub(crate) fn sandbox_to_api(kind: SandboxKind) -> api::Sandbox {
    match kind {
        SandboxKind::Vm => api::Sandbox::Vm,
        SandboxKind::Process => api::Sandbox::Process,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_the_strongest_available_sandbox() {
        for (wanted, has_vms, expected) in [
            (api::Sandbox::Auto, true, Some(SandboxKind::Vm)),
            (api::Sandbox::Auto, false, Some(SandboxKind::Process)),
            (api::Sandbox::Vm, true, Some(SandboxKind::Vm)),
            (api::Sandbox::Vm, false, None),
            (api::Sandbox::Process, true, Some(SandboxKind::Process)),
        ] {
            assert_eq!(resolve(wanted, has_vms).ok(), expected, "{wanted:?}");
        }
    }
}
