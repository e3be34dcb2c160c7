//! Reads, writes and lists handlers of boxes.

use super::lifecycle::state;
use super::state::Supervisor;
use crate::boxes::{Instance, ManagedBox, Phase, in_box};
use crate::error::OperationError;
use crate::limits::{LIST_TIMEOUT, MAX_HANDLER_BYTES};
use api::escape;
use api::{BoxName, ConfigurationName, HandlerInfo, HandlerPath, HandlerValue, Value};
use boundary::Request;
use std::sync::Arc;
use std::time::Instant;

impl Supervisor {
    /// Reads a handler, with an argument that may be empty.
    pub fn read(&self, path: &HandlerPath, argument: &[u8]) -> Result<HandlerValue, OperationError> {
        let (managed, instance) = self.running(&path.name)?;
        let name = in_box(&path.configuration);
        let request = Request::Read { name, handler: &path.handler, argument };
        Ok(HandlerValue { value: Value(self.call(&managed, &instance, &request)?) })
    }

    /// Writes a handler.
    pub fn write(&self, path: &HandlerPath, value: &[u8]) -> Result<(), OperationError> {
        let most = boundary::limits::MAX_REQUEST / 2;
        if value.len() > most {
            return Err(OperationError::TooLarge("the value", value.len(), most));
        }
        let (managed, instance) = self.running(&path.name)?;
        let name = in_box(&path.configuration);
        let request = Request::Write { name, handler: &path.handler, value };
        self.call(&managed, &instance, &request).map(drop)
    }

    /// Lists the handlers of a box, in the order of configurations and elements.
    pub fn handlers(&self, name: &BoxName) -> Result<Vec<HandlerInfo>, OperationError> {
        let (managed, instance) = self.running(name)?;
        let names: Vec<ConfigurationName> =
            managed.inner().installed.iter().map(|installed| installed.name.clone()).collect();
        let (start, mut found, mut bytes) = (Instant::now(), Vec::new(), 0);
        for configuration in names {
            let read = |handler: &str| {
                if start.elapsed() >= LIST_TIMEOUT {
                    return Err(OperationError::Timeout(name.clone(), LIST_TIMEOUT));
                }
                let request = Request::Read { name: in_box(&configuration), handler, argument: b"" };
                let reply = self.call(&managed, &instance, &request)?;
                Ok(String::from_utf8_lossy(&reply).into_owned())
            };
            // The list of elements starts with their number.
            let list = read("list")?;
            let elements = list.lines().skip(1).filter(|line| !line.is_empty());
            for element in std::iter::once("").chain(elements) {
                let of_router = element.is_empty();
                let reply = if of_router { read("handlers")? } else { read(&format!("{element}.handlers"))? };
                for handler in parse(element, &reply, &configuration) {
                    bytes += size_of::<HandlerInfo>() + handler.element.len() + handler.handler.len();
                    if bytes > MAX_HANDLER_BYTES {
                        return Ok(found);
                    }
                    found.push(handler);
                }
            }
        }
        Ok(found)
    }

    /// A running box.
    fn running(&self, name: &BoxName) -> Result<(Arc<ManagedBox>, Arc<Instance>), OperationError> {
        let managed = self.0.managed_box(name)?;
        let (phase, instance) = {
            let inner = managed.inner();
            (inner.phase, inner.instance.clone())
        };
        match (phase, instance) {
            (Phase::Running, Some(instance)) => Ok((managed, instance)),
            (phase, _) => Err(state(&managed, phase, "only a running box has handlers")),
        }
    }
}

/// Parses an element's handler list: each line has a name and `r`, `w` or both.
fn parse(element: &str, reply: &str, configuration: &ConfigurationName) -> impl Iterator<Item = HandlerInfo> {
    let handler = move |line: &str| {
        let (name, flags) = line.split_once(['\t', ' '])?;
        Some(HandlerInfo {
            configuration: configuration.clone(),
            element: escape::line(element.as_bytes()),
            handler: escape::line(name.as_bytes()),
            read: flags.contains('r'),
            write: flags.contains('w'),
        })
    };
    reply.lines().filter_map(handler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_handlers_are_read() {
        let main = ConfigurationName::main();
        let found = parse("c", "count\tr\nreset\tw\nlimit\trw\nnonsense\n\x1b\tr\n", &main);
        let rows: Vec<(String, bool, bool)> = found.map(|one| (one.path(), one.read, one.write)).collect();
        let expected = [
            ("c.count", true, false),
            ("c.reset", false, true),
            ("c.limit", true, true),
            ("c.\\u{1b}", true, false),
        ];
        assert_eq!(rows, expected.map(|(path, read, write)| (path.to_string(), read, write)));
    }
}
