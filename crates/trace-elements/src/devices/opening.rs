//! Opening of devices and reporting of their errors.

use element::arguments::Word;
use element::prelude::*;
use element::{Device, DeviceRequest, IoError};

/// Opens a device; an error message starts with the device name.
pub(super) fn open(cx: &Context, name: &str, request: &DeviceRequest) -> Result<Box<dyn Device>, SetupError> {
    cx.environment().device(request).map_err(|error| SetupError::new(format_args!("{name}: {error}")))
}

/// Logs an error, unless it equals the last one, which `last` stores.
pub(super) fn report(cx: &Context, device: &str, result: Result<(), IoError>, last: &mut Option<IoError>) {
    let error = result.err();
    if let Some(error) = error.as_ref().filter(|error| last.as_ref() != Some(error)) {
        let class = cx.class_name();
        cx.log(&format!("{class}({device}): {error}"));
    }
    *last = error.or_else(|| last.take());
}

/// Checks how a device is to be opened. Returns whether by XDP sockets.
pub(super) fn check_method(method: Option<&Word>, setup: &mut Setup) -> Result<bool, SetupError> {
    match method.map(|method| &*method.0) {
        None | Some("LINUX" | "PCAP") => Ok(false),
        Some("XDP") => Ok(true),
        Some(other @ ("NETMAP" | "DPDK")) => {
            let problem =
                format!("METHOD {other} has no effect here: the interface is opened as with METHOD LINUX");
            setup.warn_about(other, problem);
            Ok(false)
        }
        Some(other) => Err(SetupError::new(format_args!("bad METHOD {other}: use LINUX, PCAP or XDP"))),
    }
}
