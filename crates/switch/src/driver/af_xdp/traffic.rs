//! Traffic for measurements: frames that the kernel makes. They cost so little that what receives them limits the rate.

use super::error::XdpError;
use super::program::Program;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

/// Frames that the kernel makes at once.
const BATCH: u32 = 64;

/// The number of a device.
fn number(device: &str) -> Result<u32, XdpError> {
    let name = CString::new(device).map_err(|_| XdpError::Device(io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(XdpError::Device(io::Error::last_os_error())),
        number => Ok(number),
    }
}

/// Sends copies of a frame by a device, made by the kernel.
#[derive(Debug)]
pub struct XdpSource {
    program: Program,
    frame: Vec<u8>,
    /// The kernel runs a program that is attached to a device at once, and waits for all processors before it runs another one.
    _link: OwnedFd,
}

impl XdpSource {
    /// Prepares a device of this network namespace, which must receive nothing, and of which the far end must process frames by
    /// XDP.
    pub fn new(device: &str, frame: &[u8]) -> Result<Self, XdpError> {
        let device = number(device)?;
        let program = Program::redirecting(device).map_err(XdpError::Program)?;
        let link = program.attach(device).map_err(XdpError::Program)?;
        Ok(Self { program, frame: frame.to_vec(), _link: link })
    }

    /// Sends up to this number of frames, and returns when they were given to the device. Frames for which it has no room are
    /// dropped. It is to be called in the network namespace of the device.
    pub fn send(&self, frames: u32) -> Result<(), XdpError> {
        match self.program.run(&self.frame, frames, BATCH) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(XdpError::Program(error)),
            _ => Ok(()),
        }
    }
}

/// Attaches a program to a device of this network namespace that leaves all frames to the host, as long as the returned descriptor
/// is open. Then the device takes frames of an [`XdpSource`] at its far end.
pub fn pass_frames(device: &str) -> Result<OwnedFd, XdpError> {
    let device = number(device)?;
    Program::passing().and_then(|program| program.attach(device)).map_err(XdpError::Program)
}
