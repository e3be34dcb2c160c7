//! Reads, writes and lists handlers of boxes.

use super::state::Supervisor;
use crate::error::OperationError;
use crate::limits::{CALL_TIMEOUT, LIST_TIMEOUT, MAX_HANDLER_BYTES, MAX_PROMPT_ARGUMENT};
use api::escape;
use api::{BoxName, ConfigurationName, HandlerInfo, HandlerPath, HandlerValue, Value, WriteEffect};
use protocol::fabric::{Asked, FabricError, orders};
use serde_bytes::ByteBuf;
use std::time::{Duration, Instant};

impl Supervisor {
    /// Reads a handler, with an argument that may be empty.
    pub fn read(&self, path: &HandlerPath, argument: &[u8]) -> Result<HandlerValue, OperationError> {
        self.0.managed_box(&path.name)?;
        let value = self.until_rebuilt(|| self.read_within(path, argument, CALL_TIMEOUT))?;
        Ok(HandlerValue { value: Value(value) })
    }

    /// Like [`read`](Self::read), but no thread waits for the answer. `None` if that is not possible now, if the argument is
    /// long, or if the fabric does not have the box yet.
    pub async fn try_read(
        &self,
        path: &HandlerPath,
        argument: &[u8],
    ) -> Result<Option<HandlerValue>, OperationError> {
        self.0.managed_box(&path.name)?;
        if argument.len() > MAX_PROMPT_ARGUMENT {
            return Ok(None);
        }
        let Some(answer) = self.0.fabrics.try_begin(read_order(path, argument, CALL_TIMEOUT))? else {
            return Ok(None);
        };
        // The box has the time that is in the order.
        match answer.get().await {
            Ok(value) => Ok(Some(HandlerValue { value: Value(value.into_vec()) })),
            Err(OperationError::NoBox(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn read_within(
        &self,
        path: &HandlerPath,
        argument: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, OperationError> {
        let value = self.0.fabrics.ask(read_order(path, argument, timeout));
        value.map(ByteBuf::into_vec)
    }

    /// Lists the handlers of a box, in the order of configurations and elements.
    pub fn handlers(&self, name: &BoxName) -> Result<Vec<HandlerInfo>, OperationError> {
        self.0.managed_box(name)?;
        let runtime = self.runtime(name, Asked::None)?;
        let names = runtime.configurations.into_iter().map(|configuration| configuration.name);
        let (start, mut found, mut bytes) = (Instant::now(), Vec::new(), 0);
        for configuration in names {
            let read = |handler: &str| {
                let left = LIST_TIMEOUT.saturating_sub(start.elapsed());
                if left.is_zero() {
                    return Err(FabricError::Timeout(name.clone(), LIST_TIMEOUT).into());
                }
                let path = HandlerPath {
                    name: name.clone(),
                    configuration: configuration.clone(),
                    handler: handler.into(),
                };
                let reply = self.read_within(&path, b"", left)?;
                Ok::<_, OperationError>(String::from_utf8_lossy(&reply).into_owned())
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
}

/// The order to read a handler.
fn read_order(path: &HandlerPath, argument: &[u8], timeout: Duration) -> orders::ReadHandler {
    orders::ReadHandler {
        name: path.name.clone(),
        configuration: path.configuration.clone(),
        handler: path.handler.clone(),
        argument: ByteBuf::from(argument),
        timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
    }
}

/// Parses an element's handler list: each line has a name and `r`, `w` or both, and behind `w` what a write changes: `s`
/// for a setting, `e` for an edit.
fn parse(element: &str, reply: &str, configuration: &ConfigurationName) -> impl Iterator<Item = HandlerInfo> {
    let handler = move |line: &str| {
        let (name, flags) = line.split_once(['\t', ' '])?;
        Some(HandlerInfo {
            configuration: configuration.clone(),
            element: escape::line(element.as_bytes()),
            handler: escape::line(name.as_bytes()),
            read: flags.contains('r'),
            write: flags.contains('w'),
            effect: flags.contains('w').then_some(match flags {
                _ if flags.contains('s') => WriteEffect::Setting,
                _ if flags.contains('e') => WriteEffect::Edit,
                _ => WriteEffect::Action,
            }),
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
        let found = parse("c", "count\tr\nreset\tw\nlimit\trws\nadd\twe\nnonsense\n\x1b\tr\n", &main);
        let rows: Vec<_> = found.map(|one| (one.path(), one.read, one.write, one.effect)).collect();
        let expected = [
            ("c.count", true, false, None),
            ("c.reset", false, true, Some(WriteEffect::Action)),
            ("c.limit", true, true, Some(WriteEffect::Setting)),
            ("c.add", false, true, Some(WriteEffect::Edit)),
            ("c.\\u{1b}", true, false, None),
        ];
        assert_eq!(rows, expected.map(|(path, read, write, effect)| (path.to_string(), read, write, effect)));
    }
}
