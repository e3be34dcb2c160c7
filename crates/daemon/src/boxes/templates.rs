//! Templates: snapshots of freshly installed boxes, from which equal boxes start faster.
//!
//! Boxes are equal if they have the same recipe. At a recipe's second start, another box of it is created in the
//! background, without traffic. Its snapshot becomes the template: later boxes of the recipe start as copies, without
//! installing their configurations.

use super::pools::shares_packets;
use crate::limits::{MAX_TEMPLATE_KEY_BYTES, MAX_TEMPLATES};
use crate::store::StoredConfiguration;
use api::{ConfigurationName, CreateBox, File, Sandbox as Kind};
use sandbox::Snapshot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Everything that determines a freshly installed box, except what each copy gets anew: port addresses, seeds, time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    kind: Kind,
    memory: u64,
    ring: u32,
    ports: usize,
    /// Names, texts and files.
    configurations: Vec<(ConfigurationName, String, Vec<File>)>,
}

impl Recipe {
    /// The recipe of a box. `None` if it is too large to keep, or if such boxes cannot be copied.
    pub(crate) fn new(
        kind: Kind,
        definition: &CreateBox,
        configurations: &[(StoredConfiguration, Vec<File>)],
    ) -> Option<Self> {
        let size = |(configuration, files): &(StoredConfiguration, Vec<File>)| {
            let files = files.iter().map(|file| file.name.len() + file.contents.0.len());
            configuration.text.len() + files.sum::<usize>()
        };
        // A box whose packets are in a shared pool cannot be copied.
        if shares_packets(definition)
            || configurations.iter().map(size).sum::<usize>() > MAX_TEMPLATE_KEY_BYTES
        {
            return None;
        }
        // A configuration's source name and installation time make no difference to a box.
        let part = |(configuration, files): &(StoredConfiguration, Vec<File>)| {
            (configuration.name.clone(), configuration.text.clone(), files.clone())
        };
        Some(Self {
            kind,
            memory: definition.memory.0,
            ring: definition.ring.into(),
            ports: definition.ports.len(),
            configurations: configurations.iter().map(part).collect(),
        })
    }
}

/// A snapshot of a freshly installed box, and the box's replies.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) snapshot: Snapshot,
    /// The replies to its installations, in the order of its configurations.
    pub(crate) replies: Vec<Vec<u8>>,
}

/// How a box is started.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// As a copy of a template.
    Copy(Arc<Template>),
    /// By installing its configurations. If there is a recipe, the caller must create its template in the background
    /// and pass it to [`Templates::keep`].
    Anew(Option<Arc<Recipe>>),
}

#[derive(Debug)]
enum State {
    /// Started once.
    Known,
    /// The template is being created.
    Making,
    /// Boxes of this recipe cannot serve as templates.
    Useless,
    Ready(Arc<Template>),
}

/// The templates and the recently started recipes.
#[derive(Debug, Default)]
pub(crate) struct Templates(Mutex<Vec<(Arc<Recipe>, State)>>);

impl Templates {
    fn lock(&self) -> MutexGuard<'_, Vec<(Arc<Recipe>, State)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides how a box of this recipe is started.
    pub(crate) fn begin(&self, recipe: Recipe) -> Beginning {
        let mut recipes = self.lock();
        let Some(place) = recipes.iter().position(|(known, _)| **known == recipe) else {
            if recipes.len() >= MAX_TEMPLATES {
                recipes.remove(0);
            }
            recipes.push((Arc::new(recipe), State::Known));
            return Beginning::Anew(None);
        };
        // The list is ordered by last use; the least recently used recipe comes first.
        let (recipe, state) = recipes.remove(place);
        let (state, beginning) = match state {
            State::Known => (State::Making, Beginning::Anew(Some(recipe.clone()))),
            State::Ready(template) => (State::Ready(template.clone()), Beginning::Copy(template)),
            other => (other, Beginning::Anew(None)),
        };
        recipes.push((recipe, state));
        beginning
    }

    /// Stores the template of a recipe, or that it has none.
    pub(crate) fn keep(&self, recipe: &Arc<Recipe>, template: Option<Template>) {
        if let Some((_, state)) = self.lock().iter_mut().find(|(known, _)| Arc::ptr_eq(known, recipe)) {
            *state = template.map_or(State::Useless, |template| State::Ready(Arc::new(template)));
        }
    }

    /// Discards a template from which no box could be started.
    pub(crate) fn give_up(&self, template: &Arc<Template>) {
        let is_it = |state: &State| matches!(state, State::Ready(ready) if Arc::ptr_eq(ready, template));
        if let Some((_, state)) = self.lock().iter_mut().find(|(_, state)| is_it(state)) {
            *state = State::Useless;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{PortRequest, Time};

    /// A configuration as stored.
    fn stored(text: &str) -> (StoredConfiguration, Vec<File>) {
        let configuration = StoredConfiguration {
            id: 7,
            name: ConfigurationName::main(),
            source: Some("fw.click".into()),
            installed: Time::now(),
            swaps: 3,
            text: text.into(),
        };
        (configuration, Vec::new())
    }

    fn recipe(text: &str, ports: usize) -> Recipe {
        let definition = CreateBox {
            ports: vec![PortRequest::default(); ports],
            ..CreateBox::new("fw".parse().unwrap(), "")
        };
        Recipe::new(Kind::Process, &definition, &[stored(text)]).unwrap()
    }

    #[test]
    fn a_template_is_wanted_at_the_second_start() {
        let templates = Templates::default();
        let next = |text| templates.begin(recipe(text, 1));
        assert!(matches!(next("Idle;"), Beginning::Anew(None)));
        assert!(matches!(templates.begin(recipe("Idle;", 2)), Beginning::Anew(None)));
        let Beginning::Anew(Some(wanted)) = next("Idle;") else { panic!("a template is wanted") };
        assert!(matches!(next("Idle;"), Beginning::Anew(None)), "it is being made");
        templates.keep(&wanted, None);
        assert!(matches!(next("Idle;"), Beginning::Anew(None)), "there is none");
    }

    #[test]
    fn few_recipes_are_kept_and_none_that_is_long() {
        let templates = Templates::default();
        templates.begin(recipe("Idle;", 1));
        for number in 0..MAX_TEMPLATES {
            templates.begin(recipe(&number.to_string(), 1));
        }
        assert_eq!(templates.lock().len(), MAX_TEMPLATES);
        assert!(matches!(templates.begin(recipe("Idle;", 1)), Beginning::Anew(None)), "it was forgotten");
        let long = stored(&" ".repeat(MAX_TEMPLATE_KEY_BYTES + 1));
        let definition = CreateBox::new("fw".parse().unwrap(), "");
        assert_eq!(Recipe::new(Kind::Process, &definition, &[long]), None);
        let port = PortRequest { attach: "pipe:p".parse().unwrap(), ..PortRequest::default() };
        let piped = CreateBox { ports: vec![port], ..definition };
        assert_eq!(Recipe::new(Kind::Process, &piped, &[]), None, "its packets lie in a pool");
    }
}
