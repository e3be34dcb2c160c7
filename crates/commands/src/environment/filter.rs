//! Firewall rules that keep received frames from the host's kernel.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use element::IoError;

/// Folders that may hold the firewall program, in addition to PATH.
const EXTRA_FOLDERS: [&str; 2] = ["/sbin", "/usr/sbin"];

/// A rule that makes the kernel drop what an interface receives for this host. Dropping the value removes the rule.
pub(super) struct KernelFilter {
    program: PathBuf,
    interface: String,
}

impl KernelFilter {
    /// Adds the rule.
    pub(super) fn install(interface: &str) -> Result<KernelFilter, IoError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain(EXTRA_FOLDERS.map(PathBuf::from));
        let program = folders.map(|folder| folder.join("iptables")).find(|program| program.is_file());
        let program = program.ok_or_else(|| {
            IoError::NotFound("no ‘iptables’ executable found, which SNIFFER false needs: install it".into())
        })?;
        run(&program, "-A", interface)?;
        Ok(KernelFilter { program, interface: interface.into() })
    }
}

impl Drop for KernelFilter {
    fn drop(&mut self) {
        if let Err(error) = run(&self.program, "-D", &self.interface) {
            let interface = &self.interface;
            eprintln!("{error}; the kernel still drops all packets that {interface} receives");
        }
    }
}

/// Adds or removes the rule.
fn run(program: &Path, action: &str, interface: &str) -> Result<(), IoError> {
    let mut command = Command::new(program);
    command.args([action, "INPUT", "-i", interface, "-j", "DROP"]).stdin(Stdio::null());
    let output = command.output();
    let reason = match &output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
        Err(error) => error.to_string(),
    };
    let program = program.display();
    Err(IoError::Failed(format!("{program} {action} INPUT -i {interface} -j DROP: {reason}")))
}
