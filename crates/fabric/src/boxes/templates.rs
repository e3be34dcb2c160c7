//! Templates: snapshots of freshly installed boxes, from which equal boxes start faster.
//!
//! Boxes are equal if they have the same key. At the second start of a key, another box of it is created in the
//! background, without traffic. Its snapshot becomes the template: later boxes of the key start as copies, without
//! installing their configurations.

use super::pools::shares_packets;
use crate::limits::{MAX_TEMPLATE_KEY_BYTES, MAX_TEMPLATES};
use model::{ConfigurationName, CreateBox, Destination, File, ImageDigest};
use protocol::fabric::Configuration;
use sandbox::{SandboxKind, Snapshot};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Everything that determines a freshly installed box, except what each copy gets for itself: port addresses, seeds,
/// time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateKey {
    image: Option<ImageDigest>,
    kind: SandboxKind,
    memory: u64,
    ring: u32,
    ports: usize,
    /// The configurations; their versions make no difference.
    configurations: Vec<Installed>,
}

/// What a configuration installs: its name, its text, its files, what it may send packets to, and its variables.
type Installed = (ConfigurationName, String, Vec<File>, Vec<Destination>, Vec<(String, String)>);

impl TemplateKey {
    /// The template key of a box. `None` if it is too large to keep, or if such boxes cannot be copied.
    pub(crate) fn new(
        kind: SandboxKind,
        definition: &CreateBox,
        configurations: &[Arc<Configuration>],
    ) -> Option<Self> {
        let size = |configuration: &Arc<Configuration>| {
            let files = configuration.files.iter().map(|file| file.name.len() + file.contents.0.len());
            configuration.text.len() + files.sum::<usize>()
        };
        // A box whose packets are in a shared pool cannot be copied.
        if shares_packets(definition)
            // Each of several cores is told which one it is.
            || !definition.cores.is_one()
            || configurations.iter().map(size).sum::<usize>() > MAX_TEMPLATE_KEY_BYTES
        {
            return None;
        }
        // A configuration's version makes no difference to a box.
        let part = |configuration: &Arc<Configuration>| {
            let Configuration { name, text, files, destinations, parameters, .. } = &**configuration;
            (name.clone(), text.clone(), files.clone(), destinations.clone(), parameters.clone())
        };
        Some(Self {
            image: definition.image_digest().copied(),
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
pub(crate) enum StartMode {
    /// As a copy of a template.
    Copy(Arc<Template>),
    /// By installing its configurations. If there is a key, the caller must create its template in the background
    /// and pass it to [`Templates::keep`].
    Install(Option<Arc<TemplateKey>>),
}

#[derive(Debug)]
enum State {
    /// Started once.
    Known,
    /// The template is being created, since this moment.
    Making(Instant),
    /// Boxes of this key cannot serve as templates.
    Useless,
    Ready(Arc<Template>),
}

/// The templates and the recently started keys.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    keys: Mutex<Keys>,
    /// Notified when a template was made, or cannot be made.
    made: Condvar,
}

type Keys = Vec<(Arc<TemplateKey>, State)>;

/// The time that boxes wait for a template which is being made for them. Longer ones are installed: it may never be ready.
const MAKING_TIMEOUT: Duration = Duration::from_millis(10);

impl Templates {
    fn lock(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides how a box of this key is started, if others of the key are started as well: the first one's caller creates
    /// the template at once, and the others wait for it.
    pub(crate) fn begin_with_equals(&self, key: TemplateKey) -> StartMode {
        let mut keys = self.lock();
        loop {
            match keys.iter().find(|(known, _)| **known == key).map(|(_, state)| state) {
                None => add(&mut keys, Arc::new(key.clone()), State::Known),
                Some(State::Making(since)) if since.elapsed() < MAKING_TIMEOUT => {
                    let left = MAKING_TIMEOUT.saturating_sub(since.elapsed());
                    keys = self.made.wait_timeout(keys, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => return decide(&mut keys, key),
            }
        }
    }

    /// Decides how a box of this key is started.
    pub(crate) fn begin(&self, key: TemplateKey) -> StartMode {
        decide(&mut self.lock(), key)
    }

    /// Whether a box of this kind may have a template: its configurations are not known yet.
    pub(crate) fn may_have(&self, kind: SandboxKind, definition: &CreateBox) -> bool {
        let is_like = |key: &TemplateKey| {
            key.kind == kind
                && key.image.as_ref() == definition.image_digest()
                && key.memory == definition.memory.0
                && key.ring == u32::from(definition.ring)
                && key.ports == definition.ports.len()
        };
        self.lock().iter().any(|(key, state)| matches!(state, State::Ready(_)) && is_like(key))
    }

    /// Stores the template of a key, or that it has none.
    pub(crate) fn keep(&self, key: &Arc<TemplateKey>, template: Option<Template>) {
        if let Some((_, state)) = self.lock().iter_mut().find(|(known, _)| Arc::ptr_eq(known, key)) {
            *state = template.map_or(State::Useless, |template| State::Ready(Arc::new(template)));
        }
        self.made.notify_all();
    }

    /// Forgets the boxes with an image, which no box has any more.
    pub(crate) fn forget_image(&self, image: &ImageDigest) {
        self.lock().retain(|(key, _)| key.image.as_ref() != Some(image));
    }

    /// Discards a template from which no box could be started.
    pub(crate) fn give_up(&self, template: &Arc<Template>) {
        let is_it = |state: &State| matches!(state, State::Ready(ready) if Arc::ptr_eq(ready, template));
        if let Some((_, state)) = self.lock().iter_mut().find(|(_, state)| is_it(state)) {
            *state = State::Useless;
        }
    }
}

fn add(keys: &mut Keys, key: Arc<TemplateKey>, state: State) {
    if keys.len() >= MAX_TEMPLATES {
        keys.remove(0);
    }
    keys.push((key, state));
}

fn decide(keys: &mut Keys, key: TemplateKey) -> StartMode {
    let Some(index) = keys.iter().position(|(known, _)| **known == key) else {
        add(keys, Arc::new(key), State::Known);
        return StartMode::Install(None);
    };
    // The list is ordered by last use; the least recently used key comes first.
    let (key, state) = keys.remove(index);
    let (state, mode) = match state {
        State::Known => (State::Making(Instant::now()), StartMode::Install(Some(key.clone()))),
        State::Ready(template) => (State::Ready(template.clone()), StartMode::Copy(template)),
        other => (other, StartMode::Install(None)),
    };
    keys.push((key, state));
    mode
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PortRequest, Time};
    use protocol::fabric::ConfigurationVersion;

    fn stored(text: &str) -> Arc<Configuration> {
        Arc::new(Configuration {
            name: ConfigurationName::main(),
            version: ConfigurationVersion { installed: Time::now(), swaps: 3 },
            text: text.into(),
            files: Vec::new(),
            destinations: Vec::new(),
            parameters: Vec::new(),
        })
    }

    fn key(text: &str, ports: usize) -> TemplateKey {
        let definition = CreateBox {
            ports: vec![PortRequest::default(); ports],
            ..CreateBox::new("fw".parse().unwrap(), "")
        };
        TemplateKey::new(SandboxKind::Process, &definition, &[stored(text)]).unwrap()
    }

    #[test]
    fn a_template_is_requested_at_the_second_start() {
        let templates = Templates::default();
        let next = |text| templates.begin(key(text, 1));
        assert!(matches!(next("Idle;"), StartMode::Install(None)));
        assert!(matches!(templates.begin(key("Idle;", 2)), StartMode::Install(None)));
        let StartMode::Install(Some(wanted)) = next("Idle;") else { panic!("a template is wanted") };
        assert!(matches!(next("Idle;"), StartMode::Install(None)), "it is being made");
        templates.keep(&wanted, None);
        assert!(matches!(next("Idle;"), StartMode::Install(None)), "there is none");
    }

    #[test]
    fn equal_boxes_wait_for_the_template_that_is_made_for_them() {
        let templates = Templates::default();
        let next = || templates.begin_with_equals(key("Idle;", 1));
        let StartMode::Install(Some(wanted)) = next() else { panic!("the first one makes the template") };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(next);
            templates.keep(&wanted, None);
            assert!(matches!(waiting.join().unwrap(), StartMode::Install(None)), "there is none");
        });
        let other = || templates.begin_with_equals(key("Idle; Idle;", 1));
        assert!(matches!(other(), StartMode::Install(Some(_))));
        let begin = Instant::now();
        assert!(matches!(other(), StartMode::Install(None)), "it takes too long");
        assert!(begin.elapsed() < 100 * MAKING_TIMEOUT);
    }

    #[test]
    fn the_list_of_templates_is_bounded() {
        let templates = Templates::default();
        templates.begin(key("Idle;", 1));
        for number in 0..MAX_TEMPLATES {
            templates.begin(key(&number.to_string(), 1));
        }
        assert_eq!(templates.lock().len(), MAX_TEMPLATES);
        assert!(matches!(templates.begin(key("Idle;", 1)), StartMode::Install(None)), "it was forgotten");
        let long = stored(&" ".repeat(MAX_TEMPLATE_KEY_BYTES + 1));
        let definition = CreateBox::new("fw".parse().unwrap(), "");
        assert_eq!(TemplateKey::new(SandboxKind::Process, &definition, &[long]), None);
        let port = PortRequest { attach: "pipe:p".parse().unwrap(), ..PortRequest::default() };
        let piped = CreateBox { ports: vec![port], ..definition };
        assert_eq!(TemplateKey::new(SandboxKind::Process, &piped, &[]), None, "its packets lie in a pool");
    }
}
