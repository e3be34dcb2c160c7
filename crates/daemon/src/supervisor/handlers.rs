//! Handlers of boxes.

use super::core::Supervisor;
use super::life::state;
use crate::boxes::{Instance, Member, Phase, in_box};
use crate::error::Failure;
use crate::escape;
use api::{BoxName, ConfigurationName, HandlerInfo, HandlerPath, HandlerValue, Value};
use boundary::Request;
use std::sync::Arc;

/// Handlers that are listed of one box: it says itself how many it has.
const MOST_HANDLERS: usize = 100_000;

impl Supervisor {
    /// Reads a handler, which is asked something or nothing.
    pub fn read(&self, path: &HandlerPath, argument: &[u8]) -> Result<HandlerValue, Failure> {
        let (member, instance) = self.running(&path.name)?;
        let name = in_box(&path.configuration);
        let request = Request::Read { name, handler: &path.handler, argument };
        Ok(HandlerValue { value: Value(self.call(&member, &instance, &request)?) })
    }

    /// Writes a handler.
    pub fn write(&self, path: &HandlerPath, value: &[u8]) -> Result<(), Failure> {
        let most = boundary::limits::MAX_REQUEST / 2;
        if value.len() > most {
            return Err(Failure::TooLarge("the value", value.len(), most));
        }
        let (member, instance) = self.running(&path.name)?;
        let name = in_box(&path.configuration);
        let request = Request::Write { name, handler: &path.handler, value };
        self.call(&member, &instance, &request).map(drop)
    }

    /// Lists the handlers of a box, in the order of configurations and elements.
    pub fn handlers(&self, name: &BoxName) -> Result<Vec<HandlerInfo>, Failure> {
        let (member, instance) = self.running(name)?;
        let names: Vec<ConfigurationName> =
            member.inner().installed.iter().map(|installed| installed.name.clone()).collect();
        let mut found = Vec::new();
        for configuration in names {
            let read = |handler: &str| {
                let request = Request::Read { name: in_box(&configuration), handler, argument: b"" };
                self.call(&member, &instance, &request)
            };
            found.extend(parse("", &read("handlers")?, &configuration));
            // The list of elements begins with their number.
            let list = read("list")?;
            let list = String::from_utf8_lossy(&list).into_owned();
            for element in list.lines().skip(1).filter(|line| !line.is_empty()) {
                if found.len() >= MOST_HANDLERS {
                    break;
                }
                found.extend(parse(element, &read(&format!("{element}.handlers"))?, &configuration));
            }
        }
        found.truncate(MOST_HANDLERS);
        Ok(found)
    }

    /// A box that runs.
    fn running(&self, name: &BoxName) -> Result<(Arc<Member>, Arc<Instance>), Failure> {
        let member = self.0.member(name)?;
        let (phase, instance) = {
            let inner = member.inner();
            (inner.phase, inner.instance.clone())
        };
        match (phase, instance) {
            (Phase::Running, Some(instance)) => Ok((member, instance)),
            (phase, _) => Err(state(&member, phase, "only a running box has handlers")),
        }
    }
}

/// The handlers of an element as it lists them: a name and `r`, `w` or both on each line.
fn parse(element: &str, reply: &[u8], configuration: &ConfigurationName) -> Vec<HandlerInfo> {
    let text = String::from_utf8_lossy(reply).into_owned();
    let handler = |line: &str| {
        let (name, flags) = line.split_once(['\t', ' '])?;
        Some(HandlerInfo {
            configuration: configuration.clone(),
            element: escape::line(element.as_bytes()),
            handler: escape::line(name.as_bytes()),
            read: flags.contains('r'),
            write: flags.contains('w'),
        })
    };
    text.lines().filter_map(handler).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_handlers_are_read() {
        let found =
            parse("c", b"count\tr\nreset\tw\nlimit\trw\nnonsense\n\x1b\tr\n", &ConfigurationName::main());
        let rows: Vec<(String, bool, bool)> =
            found.into_iter().map(|one| (one.path(), one.read, one.write)).collect();
        let expected = [
            ("c.count", true, false),
            ("c.reset", false, true),
            ("c.limit", true, true),
            ("c.\\u{1b}", true, false),
        ];
        assert_eq!(rows, expected.map(|(path, read, write)| (path.to_string(), read, write)));
    }
}
