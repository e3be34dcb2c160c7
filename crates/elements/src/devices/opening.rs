//! What the elements over devices share.

use element::prelude::*;
use element::{Device, DeviceRequest, IoError};

/// Opens a device; the message of a failure begins with its name.
pub(super) fn open(cx: &Context, name: &str, request: &DeviceRequest) -> Result<Box<dyn Device>, SetupError> {
    cx.environment().device(request).map_err(|error| SetupError::new(format_args!("{name}: {error}")))
}

/// Logs a failure, unless it is the same as the last one; `last` keeps it.
pub(super) fn report(cx: &Context, device: &str, result: Result<(), IoError>, last: &mut Option<IoError>) {
    let error = result.err();
    if let Some(error) = error.as_ref().filter(|error| last.as_ref() != Some(error)) {
        let class = cx.runtime().class_name(cx.element());
        cx.say(&format!("{class}({device}): {error}"));
    }
    *last = error.or_else(|| last.take());
}
