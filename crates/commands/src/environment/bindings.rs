//! The table that binds device names of a configuration to interfaces of this host, or to captures:
//! `--device 0=af_packet:eth0`, `--device 1=pcap:in.pcap,out.pcap`.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use element::{Interface, IoError};

use super::captures::CapturePaths;
use super::{captures, host};

/// What an interface is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    AfPacket,
    AfXdp,
    Tap,
    Pcap,
}

/// A device name of a configuration, and the interface that it stands for.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    name: String,
    driver: Driver,
    /// With the driver pcap, the files.
    interface: String,
}

/// Why a binding is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindingError {
    /// It does not have the form.
    Form,
    /// There is no driver of this name here.
    Driver(String),
    /// The table has another one for this name.
    Twice(String),
}

impl fmt::Display for BindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindingError::Form => f.write_str(
                "expected NAME=DRIVER:INTERFACE, for example 0=af_packet:eth0, host=tap:tap0 for ToHost, or \
                 0=pcap:in.pcap,out.pcap",
            ),
            BindingError::Driver(driver) => {
                write!(
                    f,
                    "there is no driver {driver}: use af_packet or af_xdp for an interface, tap for ToHost and FromHost, \
                     or pcap for captures"
                )
            }
            BindingError::Twice(name) => {
                write!(
                    f,
                    "--device binds {name} twice: a name stands for one interface, so leave one of them out"
                )
            }
        }
    }
}

impl std::error::Error for BindingError {}

impl Binding {
    /// Whether the name stands for captures.
    pub(crate) fn is_capture(&self) -> bool {
        self.driver == Driver::Pcap
    }
}

impl FromStr for Binding {
    type Err = BindingError;

    fn from_str(text: &str) -> Result<Binding, BindingError> {
        let (name, device) = text.split_once('=').ok_or(BindingError::Form)?;
        let (driver, interface) = device.split_once(':').ok_or(BindingError::Form)?;
        if name.is_empty() || interface.is_empty() {
            return Err(BindingError::Form);
        }
        let driver = match driver {
            "af_packet" | "af-packet" => Driver::AfPacket,
            "af_xdp" | "af-xdp" => Driver::AfXdp,
            "tap" => Driver::Tap,
            "pcap" => Driver::Pcap,
            other => return Err(BindingError::Driver(other.into())),
        };
        Ok(Binding { name: name.into(), driver, interface: interface.into() })
    }
}

/// The table of this process, which all its environments and shards use, and which bindings were used.
static BINDINGS: OnceLock<Vec<(Binding, AtomicBool)>> = OnceLock::new();

/// Sets the table. A command calls it before it builds an environment.
pub(crate) fn set(bindings: &[Binding]) -> Result<(), BindingError> {
    check(bindings)?;
    // A process runs one command.
    let _ = BINDINGS.set(bindings.iter().map(|binding| (binding.clone(), AtomicBool::new(false))).collect());
    Ok(())
}

/// Checks that no name is bound twice.
fn check(bindings: &[Binding]) -> Result<(), BindingError> {
    let is_new =
        |(at, binding): (usize, &Binding)| bindings.iter().take(at).all(|other| other.name != binding.name);
    match bindings.iter().enumerate().find(|found| !is_new(*found)) {
        Some((_, binding)) => Err(BindingError::Twice(binding.name.clone())),
        None => Ok(()),
    }
}

/// A warning for each name of the table that nothing has used: the configuration may have another one.
pub(crate) fn unused() -> impl Iterator<Item = String> {
    let all = BINDINGS.get().into_iter().flatten();
    all.filter(|(_, is_used)| !is_used.load(Ordering::Relaxed)).map(|(Binding { name, .. }, _)| {
        format!(
            "warning: --device {name}: no element uses a device of this name: check it in the configuration"
        )
    })
}

fn find(name: &str) -> Option<&'static Binding> {
    let (binding, is_used) = BINDINGS.get()?.iter().find(|(binding, _)| binding.name == name)?;
    is_used.store(true, Ordering::Relaxed);
    Some(binding)
}

/// The addresses that a name of a configuration stands for: those of the interface of this name, if it is bound to none, and
/// only its IPv4 address, if it is bound to captures. A number is a number wherever an address may be left out, such as the
/// output of a route.
pub(super) fn addresses(name: &str) -> Option<Interface> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    match if is_number { None } else { find(name) } {
        Some(Binding { driver: Driver::Pcap, .. }) => {
            let ip = host::interface(name).and_then(|interface| interface.ip);
            Some(Interface { ip, link: Some(captures::address(name)) })
        }
        Some(Binding { interface, .. }) => host::interface(interface),
        None => host::interface(name),
    }
}

/// The captures of a device of a configuration, if it is bound to some.
pub(super) fn captures(name: &str) -> Option<CapturePaths> {
    let files = &find(name).filter(|binding| binding.is_capture())?.interface;
    let (read, write) = files.split_once(',').unwrap_or((files, ""));
    let path = |path: &str| (!path.is_empty()).then(|| path.to_string());
    Some(CapturePaths { read: path(read), write: path(write) })
}

/// The interface to open for a device of a configuration, and whether through XDP sockets. The table decides that, and where
/// it has no such name, the element (`xdp`).
pub(super) fn open(name: &str, xdp: bool) -> Result<(&str, bool), IoError> {
    match find(name) {
        Some(Binding { driver: Driver::Tap, interface, .. }) => {
            Err(other_driver(name, "af_packet", interface))
        }
        Some(Binding { driver, interface, .. }) => Ok((interface, *driver == Driver::AfXdp)),
        None => Ok((name, xdp)),
    }
}

/// The interface to open as a tap device for a device of a configuration.
pub(super) fn open_tap(name: &str) -> Result<&str, IoError> {
    match find(name) {
        Some(Binding { driver: Driver::Tap, interface, .. }) => Ok(interface),
        Some(Binding { interface, .. }) => Err(other_driver(name, "tap", interface)),
        // ToHost without a FromHost: these names stand for no interface of their own.
        None if name == "host" || name == "sniffers" => Err(IoError::NotFound(format!(
            "no interface leads to the host: add a FromHost, or use `clickbox run` with --device {name}=tap:tap0"
        ))),
        None => Ok(name),
    }
}

fn other_driver(name: &str, needed: &str, interface: &str) -> IoError {
    IoError::Failed(format!(
        "the element needs the driver {needed}: use --device {name}={needed}:{interface}"
    ))
}

/// Whether a name is one of DPDK or netmap rather than an interface's: a port number, a PCI address or a name with a scheme.
pub(super) fn is_foreign(name: &str) -> bool {
    name.contains(':') || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The error for a name that is no interface and bound to none.
pub(super) fn unbound(name: &str) -> IoError {
    IoError::NotFound(format!(
        "no interface has this name: say which one it stands for, as in `clickbox run --device {name}=af_packet:eth0`; in a \
         box, the name is the number of one of its ports"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_have_a_name_a_driver_and_an_interface() {
        let parsed: Binding = "0000:03:00.0=af_packet:eth0".parse().unwrap();
        assert_eq!(
            (&*parsed.name, parsed.driver, &*parsed.interface),
            ("0000:03:00.0", Driver::AfPacket, "eth0")
        );
        let parsed: Binding = "host=tap:tap0".parse().unwrap();
        assert_eq!((&*parsed.name, parsed.driver, &*parsed.interface), ("host", Driver::Tap, "tap0"));
        for bad in ["", "0", "0=eth0", "=af_packet:eth0", "0=af_packet:"] {
            assert_eq!(bad.parse::<Binding>().unwrap_err(), BindingError::Form, "{bad}");
        }
        let parsed: Binding = "0=af_xdp:eth0".parse().unwrap();
        assert_eq!((&*parsed.name, parsed.driver, &*parsed.interface), ("0", Driver::AfXdp, "eth0"));
        assert_eq!("0=dpdk:eth0".parse::<Binding>().unwrap_err(), BindingError::Driver("dpdk".into()));
    }

    #[test]
    fn a_name_is_bound_once() {
        let parsed =
            ["0=af_packet:eth0", "1=af_packet:eth0", "0=pcap:in.pcap"].map(|text| text.parse().unwrap());
        assert_eq!(check(&parsed[..2]), Ok(()));
        assert_eq!(check(&parsed), Err(BindingError::Twice("0".into())));
    }

    #[test]
    fn names_of_dpdk_are_told_from_interfaces() {
        for (name, expected) in [("0", true), ("0000:03:00.0", true), ("netmap:eth5", true), ("eth0", false)]
        {
            assert_eq!(is_foreign(name), expected, "{name}");
        }
    }
}
