//! Makes the snapshots from which boxes start that are like others.

use super::boot::Stored;
use super::state::Supervisor;
use crate::boxes::{Recipe, Template, in_box};
use crate::limits::{CALL_TIMEOUT, MAX_TEMPLATE_BYTES, TEMPLATE_TIMEOUT};
use api::CreateBox;
use boundary::Request;
use std::sync::Arc;

impl Supervisor {
    /// Makes the template of a recipe, for the boxes that start after it. No box waits for that, so it has a thread of
    /// its own.
    pub(super) fn start_template(&self, recipe: Arc<Recipe>, definition: CreateBox, stored: Vec<Stored>) {
        let supervisor = self.clone();
        let run = move || {
            let template = supervisor.template(&definition, &stored);
            supervisor.0.templates.keep(&recipe, template);
        };
        // Where threads have run out, boxes of the recipe go on being installed.
        let _ = std::thread::Builder::new().name("template".into()).spawn(run);
    }

    /// A box of a recipe as it is when it was installed, and rests. Nothing: it is no good for copies.
    fn template(&self, definition: &CreateBox, stored: &[Stored]) -> Option<Template> {
        if self.0.is_ending() {
            return None;
        }
        // What is told anew to copies stands for itself here; a processor of its own would be one too many.
        let definition = CreateBox { dedicated: false, ..definition.clone() };
        let made = self.0.forge.make(&definition, self.0.fabric.bell(), None).ok()?;
        let (instance, _ports) = (made.instance, made.ports);
        instance.start().ok()?;
        let mut replies = Vec::new();
        for (configuration, files) in stored {
            for file in files {
                let request = Request::File { name: &file.name, contents: &file.contents.0 };
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
