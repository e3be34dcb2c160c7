//! What a user of a file of tokens may do: the objects of the user's owner, without devices of the host, within a quota.
//!
//! Objects of other owners do not exist for such a user. One thing shows: a name that another owner uses is taken,
//! because all owners share the names of a daemon.
//!
//! Two places decide. The server asks [`authorize`](Supervisor::authorize) before each operation, with the names in its
//! path. What a request contains is checked by the methods of the operations, which call the functions of this module.

use super::managed_box::ManagedBox;
use super::stacks::{StackPlan, StackStep};
use super::state::Supervisor;
use super::steering_step::SteeringStep;
use crate::audit::PendingEntry;
use crate::caller::{Caller, User};
use crate::error::{AccessError, OperationError};
use crate::service_error::ServiceError;
use api::{
    AddPort, Attachment, CapturePoint, Cores, CreateBox, CreateService, CreateSwitch, MAX_REPLICAS, Owner,
    PortDriver, PortRequest, Quota, ReplicaRange, Right, Size, Stack, StackName, Subject, SwitchName, Weight,
};
use boundary::limits::MAX_SLOTS;
use boundary::{RegionLayout, Slots};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an owner has, or would have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    boxes: u64,
    memory: u64,
    /// Thousandths of a CPU.
    cpu: u64,
    switches: u64,
}

/// Thousandths of a CPU. A share has at most 4,096 CPUs.
fn thousandths(cpu: Cores) -> u64 {
    (cpu.number() * 1e3).round() as u64
}

impl Holdings {
    fn of_box(definition: &CreateBox) -> Self {
        let cpu = definition.cpu_limit.filter(|_| !definition.dedicated);
        // A limit holds for all cores together.
        let cores = u64::from(u32::from(definition.cores));
        let cpu = cpu.map_or(1000 * cores, thousandths);
        Self { boxes: 1, memory: definition.memory.0.saturating_mul(cores), cpu, switches: 0 }
    }

    /// The functions that may join a service: each counts as a box, with the region that it gets if it asks for the largest rings.
    /// Their processes are not those of the daemon.
    fn of_places(service: &CreateService) -> Self {
        if !service.container {
            return Self::default();
        }
        let places = u64::from(service.places.unwrap_or(MAX_REPLICAS));
        let slots = Slots::new(MAX_SLOTS).ok();
        let slots: Vec<Slots> = service.faces.ports().filter_map(|_| slots).collect();
        let region = RegionLayout::new(&slots).map_or(0, |layout| layout.size as u64);
        Self { boxes: places, memory: places.saturating_mul(region), ..Self::default() }
    }

    const SWITCH: Self = Self { boxes: 0, memory: 0, cpu: 0, switches: 1 };

    fn add(&mut self, other: Self) {
        self.boxes = self.boxes.saturating_add(other.boxes);
        self.memory = self.memory.saturating_add(other.memory);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.switches = self.switches.saturating_add(other.switches);
    }

    fn subtract(&mut self, other: Self) {
        self.boxes = self.boxes.saturating_sub(other.boxes);
        self.memory = self.memory.saturating_sub(other.memory);
        self.cpu = self.cpu.saturating_sub(other.cpu);
        self.switches = self.switches.saturating_sub(other.switches);
    }

    /// Returns an error if `self` with `more` is beyond a quota. What does not grow is not checked: an owner whose quota
    /// was reduced can still change what is there.
    fn check(self, more: Self, quota: &Quota) -> Result<(), OperationError> {
        let check = |name, limit: Option<u64>, used: u64, more: u64, show: &dyn Fn(u64) -> String| match limit
        {
            Some(limit) if more > 0 && used.saturating_add(more) > limit => {
                let (limit, used, more) = (show(limit), show(used), show(more));
                Err(AccessError::Quota { name, limit, used, more })
            }
            _ => Ok(()),
        };
        let number = |number: u64| number.to_string();
        let cpu = |thousandths: u64| format!("{} CPUs", thousandths as f64 / 1e3);
        let size = |bytes: u64| Size(bytes).to_string();
        let cpu_limit = quota.cpu.map(thousandths);
        check("boxes", quota.boxes.map(u64::from), self.boxes, more.boxes, &number)?;
        check("memory", quota.memory.map(|size| size.0), self.memory, more.memory, &size)?;
        check("CPU time", cpu_limit, self.cpu, more.cpu, &cpu)?;
        check("switches", quota.switches.map(u64::from), self.switches, more.switches, &number)?;
        Ok(())
    }
}

impl Supervisor {
    /// The same daemon for another caller.
    pub fn for_caller(&self, caller: Caller) -> Self {
        self.for_request(caller, PendingEntry::default())
    }

    /// The same daemon for a request, whose entry of the audit log is stored with the changes of its operation.
    pub(crate) fn for_request(&self, caller: Caller, entry: PendingEntry) -> Self {
        Self(self.0.clone(), caller, entry)
    }

    /// The same daemon without restrictions, for what it does by itself.
    pub(super) fn unrestricted(&self) -> Self {
        self.for_caller(Caller::Administrator)
    }

    pub(super) fn user(&self) -> Option<&Arc<User>> {
        match &self.1 {
            Caller::Administrator => None,
            Caller::User(user) => Some(user),
        }
    }

    /// Whether the caller may do everything.
    pub(crate) fn is_administrator(&self) -> bool {
        self.user().is_none()
    }

    /// The only owner whose objects the caller may see; `None` for an administrator.
    pub(super) fn own_owner(&self) -> Option<Owner> {
        self.user().map(|user| user.owner.clone())
    }

    /// Whether the caller may see an owner's objects.
    pub(super) fn sees(&self, owner: &Owner) -> bool {
        self.1.sees(owner)
    }

    /// Returns an error unless the caller has a right, and may see the objects that the operation is about.
    ///
    /// # Errors
    ///
    /// An object of another owner gets the error for one that does not exist, before anything else of the request is
    /// examined.
    pub(crate) fn authorize(&self, right: Right, subjects: &[Subject]) -> Result<(), OperationError> {
        if !self.1.has(right) {
            return Err(AccessError::Right(right).into());
        }
        subjects.iter().try_for_each(|subject| match self.owner_of(subject)? {
            (Some(owner), _) if self.sees(&owner) => Ok(()),
            (_, missing) => Err(missing),
        })
    }

    /// Returns an error if an object belongs to another owner than the caller's. What does not exist is not reported.
    pub(super) fn require_own(&self, subject: &Subject) -> Result<(), OperationError> {
        if self.user().is_none() {
            return Ok(());
        }
        match self.owner_of(subject)? {
            (Some(owner), missing) if !self.sees(&owner) => Err(missing),
            _ => Ok(()),
        }
    }

    /// The owner of an object, and the error that says that there is no such object.
    fn owner_of(&self, subject: &Subject) -> Result<(Option<Owner>, OperationError), OperationError> {
        Ok(match subject {
            Subject::Box(name) => {
                let managed = self.0.boxes().get(name).cloned();
                let owner = managed.map(|managed| managed.inner().definition.owner.clone());
                (owner, OperationError::NoBox(name.clone()))
            }
            Subject::Switch(name) | Subject::Port(name, _) => {
                let owner = self.0.switches().get(name).map(|stored| stored.definition.owner.clone());
                (owner, OperationError::NoSwitch(name.clone()))
            }
            Subject::Stack(name) => (self.owner_of_stack(name)?, OperationError::NoStack(name.clone())),
            Subject::Service(name) => {
                let owner = self.find_service(name).map(|(_, stored)| stored.definition.instance.owner);
                (owner, OperationError::NoService(name.clone()))
            }
            Subject::Chain(switch, chain) => {
                let owner = self.0.switches().get(switch).map(|stored| stored.definition.owner.clone());
                (owner, OperationError::NoChain(switch.clone(), chain.clone()))
            }
            Subject::Daemon => (None, AccessError::Right(Right::Administer).into()),
        })
    }

    fn owner_of_stack(&self, name: &StackName) -> Result<Option<Owner>, OperationError> {
        let stacks = self.0.store().stacks()?;
        Ok(stacks.into_iter().find(|stored| stored.name == *name).map(|stored| stored.definition.owner))
    }

    /// Returns an error if a stack that a request would change belongs to another owner: its name is taken.
    pub(super) fn require_own_stack(&self, name: &StackName) -> Result<(), OperationError> {
        match self.require_own(&name.into()) {
            Err(OperationError::NoStack(_)) => Err(OperationError::Exists(name.into())),
            other => other,
        }
    }

    /// Returns an error if a capture would show packets of another owner.
    pub(super) fn require_own_point(&self, point: &CapturePoint) -> Result<(), OperationError> {
        match point {
            CapturePoint::Box(name, _) => self.require_own(&name.into()),
            CapturePoint::Switch(name, _) => self.require_own(&name.into()),
        }
    }

    /// Returns an error if the caller's objects can't be attached to a switch. For the caller there is no such switch.
    fn require_admission(&self, name: &SwitchName) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        match self.0.switches().get(name) {
            Some(stored) if !stored.definition.admits(&user.owner) => {
                Err(OperationError::NoSwitch(name.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Fills in the caller's owner where a request names none.
    fn adopt(&self, owner: &mut Owner) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        if *owner == Owner::default() {
            *owner = user.owner.clone();
        }
        match *owner == user.owner {
            true => Ok(()),
            false => Err(AccessError::Owner { own: user.owner.clone(), wanted: owner.clone() }.into()),
        }
    }

    /// Checks a box that the caller wants to create.
    pub(super) fn adopt_box(&self, request: &mut CreateBox) -> Result<(), OperationError> {
        if self.user().is_none() {
            return Ok(());
        }
        self.adopt(&mut request.owner)?;
        require_usual_weight(request.cpu_weight)?;
        for port in &request.ports {
            check_box_port(port)?;
            if let Attachment::Switch(switch) = &port.attach {
                self.require_admission(switch)?;
            }
        }
        Ok(())
    }

    /// Checks a service that the caller wants to create. Its switch must be the caller's own.
    pub(super) fn adopt_service(&self, request: &mut CreateService) -> Result<(), OperationError> {
        self.require_own(&Subject::from(&request.switch))?;
        self.adopt_instance(request)
    }

    /// Checks the instances of a service that the caller wants to create.
    pub(super) fn adopt_instance(&self, request: &mut CreateService) -> Result<(), OperationError> {
        let mut checked = request.instance.clone();
        for (number, port) in (0u8..).zip(&mut checked.ports) {
            if request.faces.ports().any(|face| face == number) {
                // The daemon gives faces this right, at a switch of the same owner.
                (port.attach, port.limits.transparent) = (Attachment::Nothing, false);
            }
        }
        self.adopt_box(&mut checked)?;
        request.instance.owner = checked.owner;
        Ok(())
    }

    /// Checks a switch that the caller wants to create.
    pub(super) fn adopt_switch(&self, request: &mut CreateSwitch) -> Result<(), OperationError> {
        if self.user().is_none() {
            return Ok(());
        }
        if !request.controllers.is_empty() {
            return Err(AccessError::Controllers.into());
        }
        self.adopt(&mut request.owner)?;
        request.ports.iter().try_for_each(|port| self.check_new_port(port))
    }

    /// Checks a port that the caller wants to add to a switch.
    pub(super) fn check_new_port(&self, port: &AddPort) -> Result<(), OperationError> {
        if self.user().is_none() {
            return Ok(());
        }
        if port.limits.transparent {
            return Err(AccessError::Transparent.into());
        }
        require_usual_weight(port.limits.weight)?;
        match &port.driver {
            PortDriver::Null {} => Ok(()),
            PortDriver::Pipe { switch, .. } => self.require_admission(switch),
            PortDriver::Box { name, .. } => self.require_own(&name.into()),
            PortDriver::Tap { .. } => Err(AccessError::HostDevice("tap devices").into()),
            PortDriver::AfPacket { .. } | PortDriver::AfXdp { .. } => {
                Err(AccessError::HostDevice("interfaces").into())
            }
            PortDriver::VhostUser { .. } | PortDriver::Memif { .. } => {
                Err(AccessError::HostDevice("sockets").into())
            }
            PortDriver::Pcap { .. } => Err(AccessError::HostDevice("capture files").into()),
            PortDriver::Vxlan { .. } | PortDriver::Geneve { .. } => {
                Err(AccessError::HostDevice("tunnels").into())
            }
        }
    }

    /// Checks a stack that the caller wants to apply.
    pub(super) fn adopt_stack(&self, name: &StackName, stack: &mut Stack) -> Result<(), OperationError> {
        if self.user().is_none() {
            return Ok(());
        }
        self.require_own_stack(name)?;
        self.adopt(&mut stack.owner)?;
        let own: BTreeSet<SwitchName> =
            sorting::collect(stack.switches.iter().map(|switch| switch.name.clone()));
        for wanted in &mut stack.switches {
            self.adopt_switch(wanted)?;
        }
        for used in &stack.external {
            // Adding ports changes the switch.
            match used.ports.is_empty() {
                true => self.require_admission(&used.name)?,
                false => self.require_own(&Subject::from(&used.name))?,
            }
            used.ports.iter().try_for_each(|port| self.check_new_port(port))?;
        }
        for wanted in &mut stack.boxes {
            // A switch of the stack whose name another owner uses is reported as taken.
            let is_foreign = |port: &PortRequest| !matches!(&port.attach, Attachment::Switch(switch) if own.contains(switch));
            let (foreign, ours): (Vec<_>, Vec<_>) = wanted.ports.iter().cloned().partition(is_foreign);
            ours.iter().try_for_each(check_box_port)?;
            let mut checked = CreateBox { ports: foreign, ..wanted.clone() };
            self.adopt_box(&mut checked)?;
            wanted.owner = checked.owner;
        }
        for wanted in &mut stack.services {
            if !own.contains(&wanted.switch) {
                self.require_own(&Subject::from(&wanted.switch))?;
            }
            self.adopt_instance(wanted)?;
            self.require_places(wanted)?;
        }
        let foreign = stack.chains.iter().filter(|wanted| !own.contains(&wanted.switch));
        foreign.map(|wanted| Subject::from(&wanted.switch)).try_for_each(|switch| self.require_own(&switch))
    }

    /// Checks that a plan changes objects of the caller's owner only, and stays within the quota.
    pub(super) fn check_plan_access(&self, plan: &StackPlan) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        let mut gone = Holdings::default();
        let mut new = Holdings::default();
        for step in &plan.steps {
            match step {
                StackStep::RemoveBox(managed) | StackStep::ReplaceBox(managed, _) => {
                    self.require_own(&Subject::from(&managed.name))?;
                    gone.add(Holdings::of_box(&managed.inner().definition));
                }
                StackStep::Alter(managed, wanted) => {
                    self.require_own(&Subject::from(&managed.name))?;
                    gone.add(Holdings::of_box(&managed.inner().definition));
                    new.add(Holdings::of_box(wanted));
                }
                StackStep::Reload(managed, _) => self.require_own(&Subject::from(&managed.name))?,
                StackStep::RemoveSwitch(stored) => {
                    self.require_own(&Subject::from(&stored.definition.name))?;
                    gone.add(Holdings::SWITCH);
                }
                StackStep::ShareSwitch(name, _) => self.require_own(&Subject::from(name))?,
                StackStep::ChangeFlows(name, _) => {
                    // New switches were checked with the definition.
                    let is_there = self.0.switches().contains_key(name);
                    if is_there {
                        self.require_own(&Subject::from(name))?;
                    }
                }
                StackStep::MakeBox(wanted) => new.add(Holdings::of_box(wanted)),
                StackStep::MakeSwitch(_) => new.add(Holdings::SWITCH),
                StackStep::Steering(step) => self.check_steering_access(step, &mut gone, &mut new)?,
                // Ports are removed where the stack made them. New ones were checked with the definition.
                StackStep::AddPort(..)
                | StackStep::RemovePort(..)
                | StackStep::SetAddress(..)
                | StackStep::KeepFlows(..) => {}
            }
        }
        let mut kept = self.holdings(&user.owner);
        kept.subtract(gone);
        // What the plan replaces by as much is within the quota.
        let mut more = new;
        more.subtract(gone);
        let mut rest = kept;
        rest.add(new);
        rest.subtract(more);
        rest.check(more, &user.quota)
    }

    /// Checks that a step changes services and chains of the caller's owner only, and counts what its instances hold.
    fn check_steering_access(
        &self,
        step: &SteeringStep,
        gone: &mut Holdings,
        new: &mut Holdings,
    ) -> Result<(), OperationError> {
        let all = |definition: &CreateBox, count: u16, sum: &mut Holdings| {
            (0..count).for_each(|_| sum.add(Holdings::of_box(definition)));
        };
        let mut leaves = |name| {
            if let Some((_, stored)) = self.find_service(name) {
                let count = u16::try_from(stored.instances.len()).unwrap_or(u16::MAX);
                all(&stored.definition.instance, count, gone);
                gone.add(Holdings::of_places(&stored.definition));
            }
        };
        match step {
            SteeringStep::Remake(wanted) | SteeringStep::Alter(wanted) => {
                self.require_own(&Subject::from(&wanted.name))?;
                leaves(&wanted.name);
                all(&wanted.instance, wanted.auto.map_or(wanted.replicas, |range| range.max), new);
                new.add(Holdings::of_places(wanted));
            }
            SteeringStep::Scale(name, request) => {
                self.require_own(&Subject::from(name))?;
                if let Some((_, stored)) = self.find_service(name) {
                    let most = request.auto.map_or(request.replicas.unwrap_or(0), |range| range.max);
                    let more = most.saturating_sub(stored.definition.replicas);
                    all(&stored.definition.instance, more, new);
                }
            }
            SteeringStep::RemoveServices(names) => {
                for name in names {
                    self.require_own(&Subject::from(name))?;
                    leaves(name);
                }
            }
            SteeringStep::Reload(name, _) => self.require_own(&Subject::from(name))?,
            // The definition was checked.
            SteeringStep::Declare(_)
            | SteeringStep::MakeChain(_)
            | SteeringStep::SetChain(_)
            | SteeringStep::RemoveChain(..)
            | SteeringStep::Keep(..) => {}
        }
        Ok(())
    }

    /// What an owner has.
    fn holdings(&self, owner: &Owner) -> Holdings {
        let mut found = Holdings::default();
        for managed in self.0.all() {
            let inner = managed.inner();
            if inner.definition.owner == *owner {
                found.add(Holdings::of_box(&inner.definition));
            }
        }
        found.add(self.places_of(owner));
        let switches = self.0.switches();
        let own = switches.values().filter(|stored| stored.definition.owner == *owner);
        own.for_each(|_| found.add(Holdings::SWITCH));
        found
    }

    /// What the functions may hold that may join an owner's services.
    fn places_of(&self, owner: &Owner) -> Holdings {
        let mut found = Holdings::default();
        let switches = self.0.switches();
        let services = switches.values().flat_map(|stored| &stored.steering.services);
        for stored in services.filter(|stored| stored.definition.instance.owner == *owner) {
            found.add(Holdings::of_places(&stored.definition));
        }
        found
    }

    /// Returns an error if the caller's quota bounds what functions take, and a new service does not say how many may join.
    pub(super) fn require_places(&self, request: &CreateService) -> Result<(), OperationError> {
        let is_bounded = |user: &Arc<User>| user.quota.boxes.is_some() || user.quota.memory.is_some();
        match request.container && request.places.is_none() && self.user().is_some_and(is_bounded) {
            true => Err(ServiceError::NoPlaces.into()),
            false => Ok(()),
        }
    }

    /// Returns an error if a service that is there, but new, is beyond the caller's quota with its places. Boxes that are made
    /// meanwhile are seen by one of the two checks.
    pub(super) fn check_places(&self, made: &CreateService) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        let (mut used, more) = (self.holdings(&user.owner), Holdings::of_places(made));
        used.subtract(more);
        used.check(more, &user.quota)
    }

    /// Returns an error if a new box is beyond the caller's quota. The caller holds the list of boxes, so that no two
    /// boxes are admitted for the same room.
    pub(super) fn check_box_quota<'a>(
        &self,
        boxes: impl Iterator<Item = &'a Arc<ManagedBox>>,
        request: &CreateBox,
    ) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        let mut used = self.places_of(&user.owner);
        for managed in boxes {
            let inner = managed.inner();
            if inner.definition.owner == user.owner {
                used.add(Holdings::of_box(&inner.definition));
            }
        }
        used.check(Holdings::of_box(request), &user.quota)
    }

    /// Returns an error if the most instances that a service may be scaled to are beyond the caller's quota: the daemon makes
    /// them later, without the caller.
    pub(super) fn check_range(
        &self,
        instance: &CreateBox,
        present: u16,
        auto: Option<ReplicaRange>,
    ) -> Result<(), OperationError> {
        let (Some(user), Some(range)) = (self.user(), auto) else { return Ok(()) };
        let mut more = Holdings::default();
        (present..range.max).for_each(|_| more.add(Holdings::of_box(instance)));
        self.holdings(&user.owner).check(more, &user.quota)
    }

    /// Returns an error if a change of a box is beyond the caller's quota. The caller holds the list of boxes until the
    /// change is made.
    pub(super) fn check_change_quota<'a>(
        &self,
        boxes: impl Iterator<Item = &'a Arc<ManagedBox>>,
        wanted: &CreateBox,
    ) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        let mut others = self.places_of(&user.owner);
        let mut before = Holdings::default();
        for managed in boxes {
            let inner = managed.inner();
            if managed.name == wanted.name {
                before = Holdings::of_box(&inner.definition);
            } else if inner.definition.owner == user.owner {
                others.add(Holdings::of_box(&inner.definition));
            }
        }
        let mut more = Holdings::of_box(wanted);
        more.subtract(before);
        others.add(before);
        others.check(more, &user.quota)
    }

    /// Returns an error if a new switch is beyond the caller's quota. Called while no other switch is created.
    pub(super) fn check_switch_quota(&self) -> Result<(), OperationError> {
        let Some(user) = self.user() else { return Ok(()) };
        let switches = self.0.switches();
        let own = switches.values().filter(|stored| stored.definition.owner == user.owner);
        let used = Holdings { switches: own.count() as u64, ..Holdings::default() };
        used.check(Holdings::SWITCH, &user.quota)
    }
}

fn require_usual_weight(weight: Weight) -> Result<(), OperationError> {
    match weight > Weight::default() {
        true => Err(AccessError::Weight.into()),
        false => Ok(()),
    }
}

/// A user's box sends from the address of its port only.
fn check_box_port(port: &PortRequest) -> Result<(), OperationError> {
    let is_other = port.limits.source.is_some() && port.limits.source != port.mac;
    if port.limits.transparent || is_other {
        return Err(AccessError::Transparent.into());
    }
    require_usual_weight(port.limits.weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_for_functions_count_as_boxes_with_their_regions() {
        let service = |container, places, faces: &str| CreateService {
            name: "nf".parse().unwrap(),
            switch: "lan".parse().unwrap(),
            instance: CreateBox::new("nf".parse().unwrap(), ""),
            faces: faces.parse().unwrap(),
            replicas: 0,
            auto: None,
            dead_after_ms: None,
            container,
            places,
            trust_pool: false,
            may_send_to: Default::default(),
            translation: None,
        };
        let of = |container, places, faces| Holdings::of_places(&service(container, places, faces));
        assert_eq!(of(false, None, "in=0"), Holdings::default());
        let one = of(true, Some(1), "in=0");
        // Two rings of 2,048 slots with a buffer of 2 KB for each slot.
        assert!((8 << 20..9 << 20).contains(&one.memory), "{}", one.memory);
        assert_eq!(one, Holdings { boxes: 1, cpu: 0, switches: 0, ..one });
        let both = of(true, Some(1), "in=0,out=1");
        assert!((16 << 20..18 << 20).contains(&both.memory), "{}", both.memory);
        assert_eq!(of(true, Some(3), "in=0"), Holdings { boxes: 3, memory: 3 * one.memory, ..one });
        assert_eq!(of(true, None, "in=0"), Holdings { boxes: 128, memory: 128 * one.memory, ..one });
    }

    #[test]
    fn a_quota_bounds_what_grows() {
        let quota = Quota {
            boxes: Some(2),
            memory: Some(Size(20 << 20)),
            cpu: "1.5".parse().ok(),
            switches: Some(0),
            uploads: None,
        };
        let mut definition = CreateBox::new("fw".parse().unwrap(), "");
        let one = Holdings::of_box(&definition);
        definition.cpu_limit = "0.5".parse().ok();
        let half = Holdings::of_box(&definition);
        assert_eq!((one.cpu, half.cpu), (1000, 500));
        // A box with a CPU of its own uses all of it.
        definition.dedicated = true;
        assert_eq!(Holdings::of_box(&definition).cpu, 1000);
        definition.cores = 3.try_into().unwrap();
        let three = Holdings::of_box(&definition);
        assert_eq!((three.boxes, three.cpu, three.memory), (1, 3000, 3 * one.memory));
        one.check(half, &quota).unwrap();
        let message = |used: Holdings, more: Holdings| used.check(more, &quota).unwrap_err().to_string();
        assert!(message(one, one).contains("CPU"), "{}", message(one, one));
        let mut two = one;
        two.add(half);
        assert!(message(two, half).contains("boxes is 2"), "{}", message(two, half));
        let large = Holdings { memory: 13 << 20, ..half };
        assert!(message(one, large).contains("memory"), "{}", message(one, large));
        assert!(message(one, Holdings::SWITCH).contains("switches"));
        // Nothing grows, although there is already too much.
        let many = Holdings { boxes: 9, memory: 1 << 40, cpu: 99_000, switches: 7 };
        many.check(Holdings::default(), &quota).unwrap();
        one.check(many, &Quota::default()).unwrap();
    }
}
