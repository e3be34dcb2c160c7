//! What a launcher knows, and how it answers.

use crate::agent::Agent;
use crate::cgroup::EndedGroups;
use crate::client::{Client, Received};
use crate::devices::Devices;
use crate::event::Event;
use crate::fabric::Fabric;
use crate::output_folder::open_output_folder;
use crate::settings::Settings;
use crate::spare::{self, Spare};
use crate::successor::{self, AdoptError, Orphan};
use protocol::launcher::{Ending, FabricState, Refusal, Reply, Request, Share, Shortfall, Step, VERSION};
use protocol::{Hello, StoreIdentity};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum number of clients. A program that leaks connections could otherwise use up the launcher's descriptors.
const MAX_CLIENTS: usize = 64;

/// Maximum number of fabrics: what one reply can list, by far.
const MAX_FABRICS: usize = 256;

/// An answer, which may have descriptors. Without one, the client waits until fabrics have ended.
type Answer = Option<(Result<Reply, Refusal>, Vec<OwnedFd>)>;

/// A fabric that has closed its end of the channel, and is not reaped yet.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) fabric: Fabric,
    /// How it ends, as the daemon is told.
    ending: Ending,
}

/// What a launcher knows.
#[derive(Debug)]
pub(crate) struct Service {
    settings: Settings,
    /// Measures that are not permitted for any fabric.
    shortfalls: Vec<Shortfall>,
    /// The store that is served: that of the first client.
    pub(crate) store: Option<StoreIdentity>,
    /// Numbered in the order in which they came.
    pub(crate) clients: BTreeMap<u64, Client>,
    last_client: u64,
    pub(crate) fabrics: Vec<Fabric>,
    /// Those that have closed their end of the channel, and are not reaped yet.
    pub(crate) leaving: Vec<Leaving>,
    /// Follows the fabric with its number.
    spare: Option<Spare>,
    /// The fabric that gets a spare, and when.
    spare_at: Option<(u32, Instant)>,
    /// How long the last spare was put off.
    spare_delay: Duration,
    devices: Devices,
    ended_groups: EndedGroups,
    /// How fabrics ended that were not told to, by number, until a daemon connects to the next one.
    endings: BTreeMap<u32, Ending>,
    /// When the last client or fabric went.
    idle_since: Option<Instant>,
    /// The launcher ends when all fabrics have ended.
    is_ending: bool,
}

impl Service {
    pub(crate) fn new(settings: Settings, shortfalls: Vec<Shortfall>) -> Self {
        Self {
            devices: Devices::new(settings.switch_threads),
            settings,
            shortfalls,
            store: None,
            clients: BTreeMap::new(),
            last_client: 0,
            fabrics: Vec::new(),
            leaving: Vec::new(),
            spare: None,
            spare_at: None,
            spare_delay: spare::DELAY,
            ended_groups: EndedGroups::default(),
            endings: BTreeMap::new(),
            idle_since: None,
            is_ending: false,
        }
    }

    /// Adopts the fabrics of a launcher that has ended and served this store.
    pub(crate) fn adopt(&mut self, store: Option<StoreIdentity>, report: &mut dyn FnMut(&Event)) {
        for (number, orphan) in successor::orphans(&self.settings.socket) {
            match orphan.and_then(|orphan| self.adopt_one(number, orphan, store)) {
                Ok(fabric) => {
                    report(&Event::Adopted(fabric.state.clone()));
                    // Several share processors, and get none.
                    let (number, count) = (fabric.state.number, self.fabrics.len());
                    self.spare_at = (count == 0).then(|| (number, Instant::now() + spare::DELAY));
                    self.fabrics.push(fabric);
                    self.store = store;
                }
                Err(error) => {
                    // A later launcher could take it for the fabric of another store.
                    successor::remove(&self.settings.socket, number);
                    report(&Event::NotAdopted { number, error });
                }
            }
        }
    }

    fn adopt_one(
        &self,
        number: u32,
        orphan: Orphan,
        store: Option<StoreIdentity>,
    ) -> Result<Fabric, AdoptError> {
        let user = self.user_of(number).map_err(|_| AdoptError::TooMany)?;
        let expected = user.unwrap_or_else(|| geteuid().as_raw());
        if orphan.user != expected {
            return Err(AdoptError::OtherUser { found: orphan.user, expected });
        }
        if store.is_none() {
            return Err(AdoptError::NoStore);
        }
        if self.fabrics.len() >= MAX_FABRICS {
            return Err(AdoptError::TooMany);
        }
        Ok(Fabric::adopt(number, orphan, &self.shortfalls))
    }

    /// Adds a client. If there are too many, the oldest one that never said what it is has to go, or else the new one.
    pub(crate) fn accept(&mut self, socket: OwnedFd) {
        if self.clients.len() >= MAX_CLIENTS {
            let silent =
                self.clients.iter().find(|(_, client)| !client.is_greeted).map(|(number, _)| *number);
            silent.and_then(|number| self.clients.remove(&number));
        }
        if self.clients.len() < MAX_CLIENTS && !self.is_ending {
            self.last_client += 1;
            self.clients.insert(self.last_client, Client::new(socket));
        }
    }

    /// Reads and answers the next message of a client. Removes a client that is gone.
    pub(crate) fn serve(&mut self, client: u64, now: Instant, report: &mut dyn FnMut(&Event)) {
        if !self.serve_next(client, now, report) {
            self.clients.remove(&client);
        }
    }

    /// Returns false if the client is to be removed.
    fn serve_next(&mut self, client: u64, now: Instant, report: &mut dyn FnMut(&Event)) -> bool {
        let Some(received) = self.clients.get(&client).map(Client::receive) else { return true };
        let answer = match received {
            Received::Nothing => return true,
            Received::End => return false,
            Received::Hello(theirs) => return self.greet(client, &theirs),
            Received::Request(request, descriptor) => {
                self.carry_out(client, (request, descriptor), now, report)
            }
        };
        let Some(client) = self.clients.get(&client) else { return false };
        answer.is_none_or(|(answer, descriptors)| client.answer(&answer, &descriptors))
    }

    fn greet(&mut self, client: u64, theirs: &Hello) -> bool {
        let ours = Hello { version: VERSION, store: self.store.unwrap_or(theirs.store) };
        let answer = ours.agree(theirs).map(|_| ours).map_err(Refusal::Hello);
        let Some(client) = self.clients.get_mut(&client) else { return false };
        if answer.is_ok() {
            self.store = Some(ours.store);
            client.is_greeted = true;
        }
        client.greet(&answer) && answer.is_ok()
    }

    fn carry_out(
        &mut self,
        client: u64,
        (request, descriptor): (Request, Option<OwnedFd>),
        now: Instant,
        report: &mut dyn FnMut(&Event),
    ) -> Answer {
        let done = || Some((Ok(Reply::Done), Vec::new()));
        match request {
            Request::Connect(number) => Some(self.connected(number, None, report)),
            Request::ConnectShare(number, share) => Some(self.connected(number, Some(&share), report)),
            Request::StartAgent(number) => {
                Some((self.start_agent(number, now).map(|()| Reply::Done), Vec::new()))
            }
            Request::Open(device) => Some(match self.devices.open(device) {
                Ok(descriptors) => (Ok(Reply::Opened), descriptors),
                Err(refusal) => (Err(refusal), Vec::new()),
            }),
            Request::OpenFolder(path, number) => {
                let opened = self.user_of(number).and_then(|user| open_output_folder(&path, user));
                Some(match opened {
                    Ok(descriptor) => (Ok(Reply::Opened), vec![descriptor]),
                    Err(refusal) => (Err(refusal), Vec::new()),
                })
            }
            Request::Close(device) => {
                self.devices.close(&device);
                done()
            }
            Request::Keep(device) => {
                Some((self.devices.keep(device, descriptor).map(|()| Reply::Done), Vec::new()))
            }
            Request::Fabrics => {
                let fabrics = self.fabrics.iter().map(|fabric| fabric.state.clone()).collect();
                Some((Ok(Reply::Fabrics(fabrics)), Vec::new()))
            }
            Request::Stop(number) => {
                let chosen = |fabric: &&mut Fabric| fabric.state.number == number;
                match self.fabrics.iter_mut().find(chosen) {
                    Some(fabric) => {
                        fabric.end(now);
                        let pid = fabric.state.pid;
                        self.clients.get_mut(&client)?.waits_for.insert(pid);
                        None
                    }
                    None => Some((Err(Refusal::NoFabric(number)), Vec::new())),
                }
            }
            Request::End if !self.settings.stays => {
                self.end(now);
                None
            }
            Request::StopAll | Request::End if self.has_none() => done(),
            Request::StopAll | Request::End => {
                self.fabrics.iter_mut().for_each(|fabric| fabric.end(now));
                let pids = self
                    .fabrics
                    .iter()
                    .chain(self.leaving.iter().map(|leaving| &leaving.fabric))
                    .map(|fabric| fabric.state.pid);
                self.clients.get_mut(&client)?.waits_for.extend(pids);
                None
            }
        }
    }

    /// Starts the agent of a fabric, unless it has one.
    fn start_agent(&mut self, number: u32, now: Instant) -> Result<(), Refusal> {
        let user = self.user_of(number)?;
        let chosen = |fabric: &&mut Fabric| fabric.state.number == number && !fabric.is_ending();
        let fabric = self.fabrics.iter_mut().find(chosen).ok_or(Refusal::NoFabric(number))?;
        fabric.agent.get_or_insert_with(|| Agent::new(now));
        fabric.start_agent(&self.settings, user, now).map_err(Refusal::Failed)
    }

    /// Starts the agents that are due.
    fn start_agents(&mut self, now: Instant) {
        for place in 0..self.fabrics.len() {
            let user = self.user_of(self.fabrics[place].state.number).ok().flatten();
            // It is tried again later.
            let _ = self.fabrics[place].start_agent(&self.settings, user, now);
        }
    }

    fn connected(
        &mut self,
        number: u32,
        share: Option<&Share>,
        report: &mut dyn FnMut(&Event),
    ) -> (Result<Reply, Refusal>, Vec<OwnedFd>) {
        match self.connect(number, share, report) {
            Ok((fabric, is_new, descriptor)) => {
                let before = self.endings.remove(&number);
                (Ok(Reply::Connected { fabric, is_new, before }), vec![descriptor])
            }
            Err(refusal) => (Err(refusal), Vec::new()),
        }
    }

    /// Connects the fabric with this number; starts it if it does not run.
    fn connect(
        &mut self,
        number: u32,
        share: Option<&Share>,
        report: &mut dyn FnMut(&Event),
    ) -> Result<(FabricState, bool, OwnedFd), Refusal> {
        if let Some(place) = self.fabrics.iter().position(|fabric| fabric.state.number == number) {
            let fabric = &mut self.fabrics[place];
            if fabric.is_ending() {
                let errno = Errno::BUSY.raw_os_error();
                return Err(Refusal::Failed(Shortfall { step: Step::EndFabric, errno }));
            }
            match fabric.connect() {
                Ok(descriptor) => return Ok((fabric.state.clone(), false, descriptor)),
                // It has closed its end: it is ending, and may not have been reaped yet.
                Err(shortfall) if shortfall.errno == Errno::PIPE.raw_os_error() => self.leave(place),
                Err(shortfall) => return Err(Refusal::Failed(shortfall)),
            }
        }
        let Some(store) = self.store else { return Err(Refusal::NotARequest) };
        if self.is_ending {
            return Err(Refusal::Ending);
        }
        if self.fabrics.len() + self.leaving.len() >= MAX_FABRICS {
            return Err(Refusal::TooMany);
        }
        let user = self.user_of(number)?;
        let spare = if share.is_none() { self.take_spare(number) } else { None };
        let (fabric, descriptor) = match spare {
            Some(connected) => connected,
            None => {
                let started = Fabric::start(&self.settings, number, user, share, &self.shortfalls);
                let mut fabric = started.map_err(Refusal::Failed)?;
                let reachable = fabric.identify(user, store, Some(&self.settings.socket));
                match reachable.and_then(|()| fabric.connect()) {
                    Ok(descriptor) => (fabric, descriptor),
                    Err(shortfall) => {
                        self.give_up(fabric);
                        return Err(Refusal::Failed(shortfall));
                    }
                }
            }
        };
        let state = fabric.state.clone();
        self.fabrics.push(fabric);
        // Fabrics that share processors are many, and a spare for each would take too much memory.
        self.spare_delay = spare::DELAY;
        self.spare_at = share.is_none().then(|| (number, Instant::now() + spare::DELAY));
        report(&Event::Started(state.clone()));
        Ok((state, true, descriptor))
    }

    /// Lets a fabric go that has closed its end: it has been killed, or is ending. The next one does not wait until its
    /// process has ended, because the kernel removes its virtual machines first: 0.3 ms for each.
    fn leave(&mut self, place: usize) {
        let mut fabric = self.fabrics.remove(place);
        let ending = fabric.expected_ending();
        self.keep_ending(fabric.state.number, ending);
        fabric.kill();
        fabric.agent = None;
        successor::remove(&self.settings.socket, fabric.state.number);
        self.leaving.push(Leaving { fabric, ending });
    }

    /// Keeps how a fabric ended, for the daemon that connects to the next one.
    fn keep_ending(&mut self, number: u32, ending: Ending) {
        if self.endings.len() < MAX_FABRICS {
            self.endings.insert(number, ending);
        }
    }

    /// Whether there are no fabrics.
    fn has_none(&self) -> bool {
        self.fabrics.is_empty() && self.leaving.is_empty()
    }

    /// Ends a fabric that can't be used.
    fn give_up(&mut self, mut fabric: Fabric) {
        fabric.kill_now();
        successor::remove(&self.settings.socket, fabric.state.number);
        self.ended_groups.add(std::mem::take(&mut fabric.state.cgroups), Instant::now());
    }

    /// The spare for this fabric, connected to a daemon. One that can't be used is ended: it may have been killed, and not
    /// have been reaped yet.
    fn take_spare(&mut self, number: u32) -> Option<(Fabric, OwnedFd)> {
        let mut spare = self.spare.take()?;
        if !spare.is_for(&self.settings, number) {
            self.ended_groups.add(spare.end(), Instant::now());
            return None;
        }
        let mut fabric = spare.into_fabric();
        match fabric.send_successor(&self.settings.socket).and_then(|()| fabric.connect()) {
            Ok(descriptor) => Some((fabric, descriptor)),
            Err(_) => {
                self.give_up(fabric);
                None
            }
        }
    }

    /// Starts the spare if it is time, and its fabric is there.
    fn start_spare(&mut self, now: Instant) {
        let Some((number, _)) = self.spare_at.take_if(|(_, at)| *at <= now) else { return };
        let is_there = self.fabrics.iter().any(|fabric| fabric.state.number == number && !fabric.is_ending());
        if let (Ok(user), Some(store)) = (self.user_of(number), self.store)
            && self.spare.is_none()
            && is_there
        {
            self.spare = Spare::start(&self.settings, number, user, &self.shortfalls);
            let identify = |spare: &mut Spare| spare.identify(user, store);
            if self.spare.as_mut().map(identify).is_some_and(|identified| identified.is_err()) {
                self.put_off_spare(number);
            }
        }
    }

    /// Readable when the spare has ended.
    pub(crate) fn spare_pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.spare.as_ref().map(Spare::pidfd)
    }

    /// Ends the spare of this fabric, which is of no use any more. Another one follows, later each time.
    fn put_off_spare(&mut self, number: u32) {
        self.end_spare();
        self.spare_delay = (self.spare_delay * 2).min(spare::MAX_DELAY);
        self.spare_at = (!self.is_ending).then(|| (number, Instant::now() + self.spare_delay));
    }

    fn end_spare(&mut self) {
        self.spare_at = None;
        if let Some(spare) = self.spare.take() {
            self.ended_groups.add(spare.end(), Instant::now());
        }
    }

    /// The user that the fabric with this number becomes: each has its own, below that of the first.
    fn user_of(&self, number: u32) -> Result<Option<u32>, Refusal> {
        let below = |user: u32| user.checked_sub(number).filter(|user| *user > 0).ok_or(Refusal::TooMany);
        self.settings.fabric_user.map(below).transpose()
    }

    /// Removes the fabrics that have ended, and answers the clients that wait for them.
    pub(crate) fn reap(&mut self, report: &mut dyn FnMut(&Event)) {
        for agent in self.fabrics.iter_mut().filter_map(|fabric| fabric.agent.as_mut()) {
            agent.reap(Instant::now());
        }
        for place in (0..self.fabrics.len()).rev() {
            if let Some(ending) = self.fabrics[place].reap() {
                self.ended(place, ending, report);
            }
        }
        for place in (0..self.leaving.len()).rev() {
            if let Some(reaped) = self.leaving[place].fabric.reap() {
                let Leaving { fabric, ending } = self.leaving.remove(place);
                let ending = if ending == Ending::Silent { reaped } else { ending };
                self.note_end(fabric, ending, report);
            }
        }
        if let Some(spare) = &mut self.spare
            && spare.reap().is_some()
        {
            let number = spare.number();
            self.put_off_spare(number);
        }
    }

    fn ended(&mut self, place: usize, ending: Ending, report: &mut dyn FnMut(&Event)) {
        let fabric = self.fabrics.remove(place);
        successor::remove(&self.settings.socket, fabric.state.number);
        let is_expected = fabric.is_ending();
        if !is_expected {
            self.keep_ending(fabric.state.number, ending);
        }
        self.note_end(fabric, ending, report);
        if is_expected && self.fabrics.is_empty() {
            self.end_spare();
        }
    }

    fn note_end(&mut self, fabric: Fabric, ending: Ending, report: &mut dyn FnMut(&Event)) {
        let is_expected = fabric.is_ending();
        let FabricState { number, pid, cgroups, .. } = fabric.state;
        self.ended_groups.add(cgroups, Instant::now());
        self.clients.retain(|_, client| {
            let is_last = client.waits_for.remove(&pid) && client.waits_for.is_empty();
            !is_last || client.answer(&Ok(Reply::Done), &[])
        });
        report(&Event::Ended { number, pid, ending, is_expected });
    }

    /// Tells all fabrics to end. The launcher ends when they have.
    pub(crate) fn end(&mut self, now: Instant) {
        self.is_ending = true;
        self.end_spare();
        self.fabrics.iter_mut().for_each(|fabric| fabric.end(now));
    }

    /// Does what the time demands. Returns false when the launcher is to end.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        self.fabrics.iter_mut().for_each(|fabric| fabric.kill_if_due(now));
        self.start_spare(now);
        self.start_agents(now);
        if self.has_none() && self.is_ending {
            return self.ended_groups.remove(now);
        }
        self.ended_groups.remove_due(now);
        // A client that does not say what it is has no claim.
        if !self.fabrics.is_empty() || self.clients.values().any(|client| client.is_greeted) {
            self.idle_since = None;
            return true;
        }
        let since = *self.idle_since.get_or_insert(now);
        if now < since + self.settings.idle_timeout {
            return true;
        }
        // Another store may come.
        self.store = None;
        self.devices.clear();
        self.end_spare();
        self.settings.stays
    }

    /// When [`tick`](Self::tick) has to be called at the latest.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let kills = self.fabrics.iter().filter_map(Fabric::kill_at);
        // A launcher that stays and has forgotten its store waits for clients only.
        let is_idle = !self.settings.stays || self.store.is_some();
        let idle = self.idle_since.filter(|_| is_idle).map(|since| since + self.settings.idle_timeout);
        let spare = self.spare_at.map(|(_, at)| at);
        let agents = self.fabrics.iter().filter(|fabric| !fabric.is_ending());
        let agents = agents.filter_map(|fabric| fabric.agent.as_ref()?.due());
        kills.chain(agents).chain(idle).chain(spare).chain(self.ended_groups.due()).min()
    }
}
