//! Creates templates: snapshots from which equal boxes start.

use super::of_service::OfService;
use super::state::Fabric;
use crate::boxes::{Template, TemplateKey, in_box};
use crate::limits::{CALL_TIMEOUT, MAX_TEMPLATE_BYTES, TEMPLATE_TIMEOUT};
use boundary::Request;
use model::CreateBox;
use protocol::fabric::Configuration;
use std::sync::Arc;

impl Fabric {
    /// Creates the template of a key, for later boxes. It runs in its own thread, so that no box waits for it.
    pub(super) fn start_template(
        &self,
        key: Arc<TemplateKey>,
        definition: CreateBox,
        configurations: Vec<Arc<Configuration>>,
    ) {
        let (fabric, made) = (self.clone(), key.clone());
        let run = move || {
            let template = fabric.template(&definition, &configurations);
            fabric.0.templates.keep(&made, template);
        };
        if std::thread::Builder::new().name("template".into()).spawn(run).is_err() {
            self.0.templates.keep(&key, None);
        }
    }

    /// The snapshot of a freshly installed, idle box of a key. `None` if such a box cannot serve as a template.
    fn template(&self, definition: &CreateBox, configurations: &[Arc<Configuration>]) -> Option<Template> {
        if self.0.is_ending() {
            return None;
        }
        // Values that each copy replaces may be anything here. A template needs no reserved processor.
        let definition = CreateBox { dedicated: false, ..definition.clone() };
        let made = self.0.factory.make(&definition, self.0.switches.wake_event(), None).ok()?;
        let (instance, _ports) = (made.instance, made.ports);
        instance.start().ok()?;
        let mut replies = Vec::new();
        for configuration in configurations {
            for file in &configuration.files {
                let request = Request::File { name: &file.name, contents: &file.contents.0 };
                instance.call(&request, CALL_TIMEOUT).ok()?;
            }
            for request in OfService::new(configuration).requests() {
                instance.call(&request, CALL_TIMEOUT).ok()?;
            }
            let (name, configuration) = (in_box(&configuration.name), configuration.text.as_str());
            let request = Request::Install { name, configuration };
            replies.push(instance.call(&request, CALL_TIMEOUT).ok()?);
        }
        let snapshot = instance.snapshot(TEMPLATE_TIMEOUT)?;
        (snapshot.size() <= MAX_TEMPLATE_BYTES).then_some(Template { snapshot, replies })
    }
}
