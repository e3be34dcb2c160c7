//! Simulates operations on a store whose disk fails: commits that fail, killed daemons, and power failures that lose or
//! tear whatever was not synchronised, also while the store is opened and migrated from an earlier version.
//! `CLICKBOX_TEST_SCHEDULES` is the number of schedules, each of which ends with a crash. `CLICKBOX_TEST_SEED` repeats a run.

use super::change::{Action, OperationId, StoreChange};
use super::entries::{StoredBox, StoredConfiguration, StoredStack, StoredSwitch, StoredUnconfirmed};
use super::schema::{SCHEMA_VERSION, Store};
use api::{BoxName, CreateBox, CreateSwitch, Event, EventKind, File, Stack, StackName, Time};
use random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// The unit in which a disk loses writes.
const SECTOR: usize = 512;

/// The header of a write-ahead log, which SQLite synchronises when it writes it.
const LOG_HEADER: usize = 32;

/// What the versions of the store before the present one lack, latest first: how it is removed.
const LATER: [&str; 6] = [
    "DELETE FROM boxes WHERE operation IS NOT NULL; DROP TABLE port_numbers;",
    "DROP TABLE audit;",
    "DROP TABLE images;",
    "DROP TABLE writes;",
    "DROP TABLE events;",
    "DROP TABLE operations; ALTER TABLE boxes DROP COLUMN operation;",
];

/// Operations in progress at the same time. Each has its own names, because claims keep them apart.
const SLOTS: usize = 2;

/// Names of a kind in each slot.
const NAMES: u32 = 3;

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct World {
    /// For each box its weight, whether it should run, and for each configuration its text and its files.
    boxes: BTreeMap<String, (CreateBox, bool, Vec<Configuration>)>,
    switches: BTreeMap<String, CreateSwitch>,
    stacks: BTreeMap<String, Time>,
    unconfirmed: Vec<String>,
}

type Configuration = (String, String, BTreeMap<String, Vec<u8>>);

impl World {
    fn read(store: &Store) -> Self {
        let mut world = Self::default();
        for stored in store.boxes().unwrap() {
            let name = &stored.definition.name;
            let configurations = store.configurations(name).unwrap().into_iter().map(|configuration| {
                let files = store.files(name, configuration.id).unwrap().into_iter();
                let files = files.map(|file| (file.name, file.contents.0)).collect();
                (configuration.name.to_string(), configuration.text, files)
            });
            let entry = (stored.definition.clone(), stored.running, configurations.collect());
            world.boxes.insert(name.to_string(), entry);
        }
        let switches = store.switches().unwrap().into_iter();
        world.switches =
            switches.map(|stored| (stored.definition.name.to_string(), stored.definition)).collect();
        let stacks = store.stacks().unwrap().into_iter();
        world.stacks = stacks.map(|stored| (stored.name.to_string(), stored.applied)).collect();
        let unconfirmed = store.unconfirmed().unwrap().into_iter();
        world.unconfirmed = unconfirmed.map(|stored| stored.name.to_string()).collect();
        world
    }
}

/// An operation in progress, with the world as it will be.
struct Pending {
    id: OperationId,
    after: World,
}

/// The bytes of the store's file and of its log.
type Image = [Vec<u8>; 2];

struct Simulation {
    folder: PathBuf,
    /// The number of the current files. After a crash the next ones are used.
    generation: u64,
    store: Store,
    random: Random,
    /// What was acknowledged, in each slot.
    worlds: [World; SLOTS],
    pending: [Option<Pending>; SLOTS],
    /// What the disk certainly holds.
    durable: Image,
    events: u64,
    counts: BTreeMap<&'static str, u32>,
}

fn file(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("store{generation}"))
}

/// The store's file and its log.
fn files(folder: &Path, generation: u64) -> [PathBuf; 2] {
    [file(folder, generation), folder.join(format!("store{generation}-wal"))]
}

/// What is on a disk if the power fails while `new` is written over `old` from a place on: of each sector the old bytes, the
/// new ones, or neither.
fn tear(old: &[u8], new: &mut [u8], from: usize, noise: &mut Random) {
    for start in (0..new.len()).step_by(SECTOR) {
        let sector = start.max(from)..(start + SECTOR).min(new.len());
        let Some(written) = new.get_mut(sector.clone()) else { continue };
        let fate = noise.below(3);
        for (byte, place) in written.iter_mut().zip(sector) {
            let before = old.get(place).copied().unwrap_or(0);
            if *byte != before && fate > 0 {
                *byte = if fate == 1 { before } else { noise.next() as u8 };
            }
        }
    }
}

impl Simulation {
    fn new(folder: &Path, seed: u64) -> Self {
        let store = Store::open(Some(&file(folder, 0)), None).unwrap();
        let mut simulation = Self {
            folder: folder.into(),
            generation: 0,
            store,
            random: Random::new(seed),
            worlds: Default::default(),
            pending: Default::default(),
            durable: Image::default(),
            events: 0,
            counts: BTreeMap::new(),
        };
        simulation.durable = simulation.image();
        simulation
    }

    fn image(&self) -> Image {
        files(&self.folder, self.generation).map(|path| std::fs::read(path).unwrap_or_default())
    }

    /// Notes what is on the disk after a change. A checkpoint, which alone changes the store's file, synchronises all.
    fn written(&mut self, is_synchronised: bool) {
        let image = self.image();
        if is_synchronised || image[0] != self.durable[0] {
            self.durable = image;
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn name(&mut self, slot: usize, kind: &str) -> String {
        format!("{}{kind}{}", ["a", "b"][slot], self.random.below(NAMES))
    }

    fn configuration(&mut self, name: &str) -> (StoredConfiguration, Vec<File>) {
        let number = self.random.below(1 << 20);
        let length = if self.random.below(4) == 0 { 20_000 } else { 50 };
        let configuration = StoredConfiguration {
            id: 0,
            name: name.parse().unwrap(),
            source: None,
            installed: Time::now(),
            swaps: 0,
            text: format!("{number} {}", "x".repeat(self.random.below(length) as usize)),
        };
        let names = ["rules", "routes"];
        let count = self.random.below(3) as usize;
        let files = names[..count].iter().map(|name| {
            let contents = format!("{name} {number}").into_bytes();
            File { name: (*name).into(), contents: contents.into() }
        });
        (configuration, files.collect())
    }

    /// Begins an operation of one to four steps.
    fn begin(&mut self, slot: usize) {
        let id = self.store.begin(Action::Apply, &"stack/edge".parse().unwrap()).unwrap();
        let mut after = self.worlds[slot].clone();
        for _ in 0..=self.random.below(4) {
            self.step(slot, id, &mut after);
        }
        self.pending[slot] = Some(Pending { id, after });
        self.written(false);
        self.count("begun");
    }

    fn step(&mut self, slot: usize, id: OperationId, after: &mut World) {
        let name = self.name(slot, "box");
        let box_name: BoxName = name.parse().unwrap();
        let switch = self.name(slot, "lan");
        let stack = self.name(slot, "stack");
        let is_there = after.boxes.contains_key(&name);
        // A configuration can be staged for a box that is stored.
        let is_stored = is_there && self.worlds[slot].boxes.contains_key(&name);
        let is_new = !after.boxes.get(&name).is_some_and(|entry| {
            self.worlds[slot].boxes.get(&name).is_some_and(|before| before.0.labels == entry.0.labels)
        });
        match self.random.below(8) {
            0..2 if !is_there => {
                let mut definition = CreateBox::new(box_name, "");
                definition.labels.insert("made".into(), self.random.next().to_string());
                let (main, files) = self.configuration("main");
                let contents =
                    files.iter().map(|file| (file.name.clone(), file.contents.0.clone())).collect();
                let entry = (definition.clone(), true, vec![("main".into(), main.text.clone(), contents)]);
                after.boxes.insert(name, entry);
                let stored = StoredBox { definition, stack: None, created: Time::now(), running: true };
                self.store.stage_box(id, stored, main, files).unwrap();
            }
            2 if is_there => {
                after.boxes.remove(&name);
                self.store.add_change(id, StoreChange::RemoveBox(box_name));
            }
            3..5 if is_stored && !is_new => {
                let which = ["main", "second"][self.random.below(2) as usize];
                let (configuration, files) = self.configuration(which);
                self.store.stage(id, &box_name, &configuration, &files).unwrap();
                // Files that are not replaced are kept: those of the configuration that is stored.
                let stored = self.worlds[slot].boxes[&name].2.iter().find(|there| there.0 == which);
                let mut contents = stored.map(|there| there.2.clone()).unwrap_or_default();
                contents.extend(files.into_iter().map(|file| (file.name, file.contents.0)));
                let entry = (which.to_string(), configuration.text, contents);
                let all = &mut after.boxes.get_mut(&name).unwrap().2;
                match all.iter_mut().find(|there| there.0 == which) {
                    Some(there) => *there = entry,
                    None => all.push(entry),
                }
            }
            5 if is_there => {
                let entry = after.boxes.get_mut(&name).unwrap();
                entry.0.cpu_weight = (1 + self.random.below(500)).try_into().unwrap();
                self.store.add_change(id, StoreChange::DefineBox(Box::new(entry.0.clone())));
            }
            6 => {
                let mut definition = CreateSwitch::new(switch.parse().unwrap());
                definition.age_seconds = self.random.below(500);
                let change = match self.random.below(3) {
                    0 => {
                        after.switches.remove(&switch);
                        StoreChange::RemoveSwitch(definition.name)
                    }
                    _ => {
                        after.switches.insert(switch, definition.clone());
                        StoreChange::PutSwitch(StoredSwitch {
                            definition,
                            addresses: Vec::new(),
                            flows: crate::store::StoredFlows::default(),
                            steering: crate::store::StoredSteering::default(),
                            makers: BTreeMap::new(),
                            stack: None,
                            created: Time::now(),
                        })
                    }
                };
                self.store.add_change(id, change);
            }
            _ => {
                let (name, applied): (StackName, _) = (stack.parse().unwrap(), Time::now());
                after.stacks.insert(stack.clone(), applied);
                if !after.unconfirmed.contains(&stack) {
                    after.unconfirmed.push(stack);
                    after.unconfirmed.sort();
                }
                let unconfirmed = StoredUnconfirmed { name: name.clone(), before: Some(Stack::default()) };
                self.store.add_change(id, StoreChange::PutUnconfirmed(unconfirmed));
                let stored = StoredStack { name, definition: Stack::default(), applied };
                self.store.add_change(id, StoreChange::PutStack(stored));
            }
        }
    }

    /// Commits the operation of a slot. Before that, commits may fail.
    fn commit(&mut self, slot: usize) {
        let Some(pending) = self.pending[slot].take() else { return };
        self.store.fail_commits(self.random.below(4) == 0);
        if self.store.commit(pending.id).is_ok() {
            self.worlds[slot] = pending.after;
            self.written(true);
            return self.count("committed");
        }
        self.store.fail_commits(false);
        self.count("commits failed");
        assert_eq!(self.now(), self.acknowledged(), "a failed commit changes nothing");
        self.pending[slot] = Some(pending);
        self.abandon(slot);
    }

    fn abandon(&mut self, slot: usize) {
        let Some(pending) = self.pending[slot].take() else { return };
        self.store.abandon(pending.id);
        self.written(false);
        self.count("abandoned");
    }

    /// What the store's tables hold.
    fn now(&mut self) -> World {
        // Without what operations in progress add for readers.
        let staged = std::mem::take(&mut self.store.staged);
        let world = World::read(&self.store);
        self.store.staged = staged;
        world
    }

    fn acknowledged(&self) -> World {
        let mut all = World::default();
        for world in self.worlds.clone() {
            all.boxes.extend(world.boxes);
            all.switches.extend(world.switches);
            all.stacks.extend(world.stacks);
            all.unconfirmed.extend(world.unconfirmed);
        }
        all
    }

    fn save_events(&mut self) {
        let event = Event {
            sequence: self.events + 1,
            time: Time::now(),
            kind: EventKind::BoxStarted,
            subject: "box/a".into(),
            owner: None,
            message: String::new(),
        };
        self.events += 1;
        self.store.save_events(&[event], self.events.saturating_sub(20), &[]).unwrap();
        self.written(false);
    }

    /// What a disk may hold after a power failure: of each sector that was written since the last synchronisation the
    /// old bytes, the new ones, or neither.
    fn after_power_failure(&mut self) -> Image {
        let [store, mut log] = self.image();
        let old = &self.durable[1];
        assert_eq!(store, self.durable[0]);
        if self.random.below(2) == 0 && log.len() > old.len().max(LOG_HEADER) {
            log.truncate(old.len().max(LOG_HEADER));
        }
        // The log contains random numbers of SQLite, which must not change what the next schedules do.
        tear(old, &mut log, LOG_HEADER, &mut Random::new(self.random.next()));
        [store, log]
    }

    /// Makes the files of the next generation.
    fn write_next(&mut self, image: &Image) -> PathBuf {
        self.generation += 1;
        for (path, bytes) in files(&self.folder, self.generation).iter().zip(image) {
            std::fs::write(path, bytes).unwrap();
        }
        file(&self.folder, self.generation)
    }

    /// Turns the present files into those of an earlier version. Returns how many versions earlier.
    fn downgrade(&mut self) -> usize {
        let steps = 1 + self.random.below(LATER.len() as u32) as usize;
        let connection = rusqlite::Connection::open(file(&self.folder, self.generation)).unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        let (version, orders) = (SCHEMA_VERSION - steps as i64, LATER[..steps].concat());
        let orders = format!("BEGIN; {orders} PRAGMA user_version = {version}; COMMIT;");
        connection.execute_batch(&orders).unwrap();
        steps
    }

    /// Opens the present files, and ends the daemon or the power meanwhile. Makes files of what is then on the disk.
    fn crash_while_opening(&mut self) {
        let before = self.image();
        let opened = Store::open(Some(&file(&self.folder, self.generation)), None).unwrap();
        let [mut store, mut log] = self.image();
        let mut noise = Random::new(self.random.next());
        // First the old log is moved into the file, then a new one begins.
        let image = match self.random.below(2) {
            0 => {
                tear(&before[0], &mut store, 0, &mut noise);
                let [_, log] = before;
                [store, log]
            }
            _ => {
                tear(&[], &mut log, LOG_HEADER, &mut noise);
                [store, log]
            }
        };
        drop(opened);
        self.write_next(&image);
        self.count("openings");
    }

    /// Ends the daemon, and starts the next one with what is on the disk.
    fn crash(&mut self) {
        let is_power_failure = self.random.below(2) == 0;
        let image = if is_power_failure { self.after_power_failure() } else { self.image() };
        self.count(if is_power_failure { "power failures" } else { "kills" });
        let last = self.generation;
        self.write_next(&image);
        let earlier = if self.random.below(4) == 0 { self.downgrade() } else { 0 };
        if earlier > 0 {
            self.count("migrations");
        }
        let is_opened_twice = self.random.below(3) == 0;
        if is_opened_twice {
            self.crash_while_opening();
        }
        // The old store does not end before its files are copied, because its end changes them.
        self.store = Store::open(Some(&file(&self.folder, self.generation)), None).unwrap();
        for generation in last..self.generation {
            for suffix in ["", "-wal", "-reserve"] {
                // Some do not exist any more.
                let _ = std::fs::remove_file(self.folder.join(format!("store{generation}{suffix}")));
            }
        }
        let found = self.store.take_damage();
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(World::read(&self.store), self.acknowledged());
        let begun = self.pending.iter().flatten().count();
        let reported = self.store.take_interrupted().len();
        // A power failure may lose the end of an operation that was abandoned, and the beginning of another one. The first
        // opening may have removed the records; an earlier version may have none.
        let is_exact = !is_power_failure && !is_opened_twice && earlier < 5;
        assert!(!is_exact || reported == begun, "{reported} of {begun}");
        self.pending = Default::default();
        let numbers: Vec<u64> = self.store.events().unwrap().iter().map(|event| event.sequence).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        let may_lack_events = is_power_failure || earlier > 3;
        assert!(may_lack_events || numbers.last().copied().unwrap_or(0) == self.events, "{numbers:?}");
        self.events = numbers.last().copied().unwrap_or(0);
        let rows = |table: &str, condition: &str| -> i64 {
            let query = format!("SELECT count(*) FROM {table} {condition}");
            self.store.connection.query_row(&query, [], |row| row.get(0)).unwrap()
        };
        let version: i64 =
            self.store.connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, SCHEMA_VERSION);
        assert_eq!(rows("operations", "") + rows("configurations", "WHERE NOT active"), 0);
        let orphans = "WHERE configuration NOT IN (SELECT id FROM configurations)";
        assert_eq!(rows("files", orphans), 0);
        // Opening has committed with synchronisation.
        self.durable = self.image();
    }

    /// Runs until a crash.
    fn run(&mut self) {
        for _ in 0..self.random.below(12) {
            let slot = self.random.below(SLOTS as u32) as usize;
            match self.random.below(8) {
                0..3 if self.pending[slot].is_none() => self.begin(slot),
                0..5 => self.commit(slot),
                5 => self.abandon(slot),
                6 => self.save_events(),
                _ => {
                    self.store.set_counter("events", self.events).unwrap();
                    self.written(true);
                }
            }
        }
        self.crash();
    }
}

#[test]
fn what_was_committed_survives_a_failing_disk() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let schedules = number("CLICKBOX_TEST_SCHEDULES").unwrap_or(2000);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    // The disk is simulated, so it need not be a real one, which takes time to synchronise.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
    let folder = folder.join(format!("clickbox-simulation-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let begin = Instant::now();
    let mut simulation = Simulation::new(&folder, seed);
    (0..schedules).for_each(|_| simulation.run());
    println!("{schedules} schedules in {:?}: {:?}", begin.elapsed(), simulation.counts);
    drop(simulation);
    std::fs::remove_dir_all(&folder).unwrap();
}
