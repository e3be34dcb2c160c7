//! Packet pools that boxes and functions of one owner share.

use crate::error::CreateError;
use crate::lock::lock;
use crate::memory::{HUGE_PAGE, Mapping};
use crate::process;
use boundary::limits::{BUFFER_SIZE, MAX_BUFFERS};
use boundary::{BufferOwners, Mapped, PoolMember, PoolShare};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// Size of a pool in bytes: all buffers that a descriptor can name. Memory is allocated only for those that boxes use.
pub(crate) const POOL_SIZE: usize = MAX_BUFFERS as usize * BUFFER_SIZE;

/// A packet pool that several boxes map. A packet that one of them sends to another over a link between two ports moves
/// with its buffer and is not copied.
///
/// Each of these boxes can read and write the packets of all of them at any time. They must therefore belong to one
/// owner, who trusts all of them with these packets.
#[derive(Debug)]
pub struct PacketPool {
    mapping: Mapping,
    /// The file that processes map. It has nothing but buffers, and its length is sealed.
    file: OwnedFd,
    holders: Arc<BufferOwners>,
    members: Mutex<BTreeSet<PoolMember>>,
}

impl PacketPool {
    /// A pool without members, for sandboxes of all kinds.
    pub fn new() -> Result<Arc<Self>, CreateError> {
        let file = process::region_file(POOL_SIZE)?;
        let mapping = Mapping::shared(&file, POOL_SIZE)?;
        mapping.prefer_huge_pages();
        let holders = Arc::new(BufferOwners::new(POOL_SIZE));
        Ok(Arc::new(Self { mapping, file, holders, members: Mutex::default() }))
    }

    /// The memory file with the buffers. A process that has it can read and change all packets in the pool, until the last
    /// member is gone and its owner gets another pool.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Adds a member that is no box, with `buffers` buffers of its own. They return to the pool when the share is dropped.
    pub fn share(self: &Arc<Self>, buffers: usize) -> Result<PoolShare, CreateError> {
        let mut membership = self.join(buffers)?;
        let (owners, member) = membership.member();
        let own = std::mem::take(&mut membership.own);
        Ok(PoolShare { buffers: membership.buffers(), owners, member, own, keeper: Box::new(membership) })
    }

    fn members(&self) -> MutexGuard<'_, BTreeSet<PoolMember>> {
        lock(&self.members)
    }

    /// Adds a box to the pool, with `buffers` buffers of its own.
    pub(crate) fn join(self: &Arc<Self>, buffers: usize) -> Result<Membership, CreateError> {
        let holder = {
            let mut members = self.members();
            let free = (1..=u16::MAX).filter_map(PoolMember::new).find(|number| !members.contains(number));
            let holder = free.ok_or(CreateError::PoolFull)?;
            members.insert(holder);
            holder
        };
        let mut membership = Membership { pool: self.clone(), holder, own: Vec::new() };
        membership.own = self.holders.take(holder, buffers).ok_or(CreateError::PoolFull)?;
        Ok(membership)
    }
}

/// A box's membership in a pool. Dropping it frees the box's buffers.
#[derive(Debug)]
pub(crate) struct Membership {
    pool: Arc<PacketPool>,
    holder: PoolMember,
    /// The buffers that its rings start with.
    pub(crate) own: Vec<u32>,
}

impl Membership {
    /// The pool's buffers. The caller must keep the membership alive.
    pub(crate) fn buffers(&self) -> Mapped {
        self.pool.mapping.mapped()
    }

    pub(crate) fn member(&self) -> (Arc<BufferOwners>, PoolMember) {
        (self.pool.holders.clone(), self.holder)
    }

    /// Collapses the box's initial buffers into huge pages.
    pub(crate) fn collapse(&self) {
        let pages: BTreeSet<usize> =
            self.own.iter().map(|buffer| *buffer as usize * BUFFER_SIZE / HUGE_PAGE).collect();
        for page in pages {
            self.pool.mapping.collapse(page * HUGE_PAGE, HUGE_PAGE);
        }
    }

    pub(crate) fn file(&self) -> &OwnedFd {
        &self.pool.file
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.pool.holders.give_back(self.holder);
        self.pool.members().remove(&self.holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_and_go_until_the_pool_is_used_up() {
        let pool = PacketPool::new().unwrap();
        let first = pool.join(120_000).unwrap();
        assert!(matches!(pool.join(12_000), Err(CreateError::PoolFull)));
        let second = pool.join(10_000).unwrap();
        assert_ne!(first.holder, second.holder);
        assert!(first.own.iter().all(|buffer| !second.own.contains(buffer)));
        let before = first.holder;
        drop(first);
        let third = pool.join(120_000).unwrap();
        assert_eq!((third.holder, third.own.len(), pool.members().len()), (before, 120_000, 2));
        // A share that is no box's returns its buffers too.
        drop(third);
        let share = pool.share(120_000).unwrap();
        assert_eq!((share.own.len(), pool.members().len()), (120_000, 2));
        drop(share);
        assert_eq!(pool.join(121_072).unwrap().own.len(), 121_072);
    }
}
