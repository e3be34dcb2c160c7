//! A list of system calls, and its translation.

use crate::error::FilterError;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads, sock_filter,
};
use std::collections::BTreeMap;

/// The system calls that a process may make.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    allowed: BTreeMap<i64, Vec<SeccompRule>>,
    refused: BTreeMap<i64, u32>,
}

/// What an argument of a system call must be. Only its lower 32 bits are compared: it is for numbers and flags that have
/// no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    index: u8,
    mask: u32,
    value: u32,
}

impl Argument {
    /// The argument with this index, from 0, has this value.
    pub const fn is(index: u8, value: u32) -> Self {
        Self { index, mask: u32::MAX, value }
    }

    /// Of the bits of `mask`, the argument has those of `value`, and not the others.
    pub const fn has(index: u8, mask: u32, value: u32) -> Self {
        Self { index, mask, value }
    }

    fn condition(self) -> Result<SeccompCondition, FilterError> {
        let operator = SeccompCmpOp::MaskedEq(self.mask.into());
        Ok(SeccompCondition::new(self.index, SeccompCmpArgLen::Dword, operator, self.value.into())?)
    }
}

impl Filter {
    /// Allows these system calls with any arguments.
    #[must_use]
    pub fn allow(mut self, calls: &[i64]) -> Self {
        self.allowed.extend(calls.iter().map(|call| (*call, Vec::new())));
        self
    }

    /// Allows a system call whose arguments are all as stated. Several such rules for one call are alternatives, and are
    /// tried in their order.
    pub fn allow_if(mut self, call: i64, arguments: &[Argument]) -> Result<Self, FilterError> {
        let conditions = arguments.iter().map(|argument| argument.condition());
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        self.allowed.entry(call).or_default().push(rule);
        Ok(self)
    }

    /// Refuses a system call with an error number. It is for calls that a library tries before it uses another one.
    #[must_use]
    pub fn refuse(mut self, call: i64, errno: u32) -> Self {
        self.refused.insert(call, errno);
        self
    }

    /// Translates the list.
    pub fn compile(self) -> Result<Program, FilterError> {
        let mut programs = Vec::new();
        let Self { mut allowed, refused } = self;
        for (call, errno) in refused {
            // Of the results of several filters the strictest counts, and an error is stricter than permission.
            allowed.insert(call, Vec::new());
            let call = BTreeMap::from([(call, Vec::new())]);
            programs.push(translate(call, SeccompAction::Allow, SeccompAction::Errno(errno))?);
        }
        programs.push(translate(allowed, SeccompAction::KillProcess, SeccompAction::Allow)?);
        Ok(Program(programs))
    }
}

fn translate(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    these: SeccompAction,
) -> Result<BpfProgram, FilterError> {
    Ok(BpfProgram::try_from(SeccompFilter::new(calls, others, these, TargetArch::x86_64)?)?)
}

/// A translated list.
#[derive(Clone, Debug)]
pub struct Program(Vec<BpfProgram>);

impl Program {
    /// Enforces the list in all threads of this process, for good. New privileges are out of reach from now on.
    pub fn install(&self) -> Result<(), FilterError> {
        self.0.iter().try_for_each(|program| apply_filter_all_threads(program).map_err(FilterError::Install))
    }

    /// The kernel's programs, in the order in which they must be installed. It is for a process that cannot call
    /// [`install`](Self::install).
    pub fn programs(&self) -> impl Iterator<Item = &[sock_filter]> {
        self.0.iter().map(Vec::as_slice)
    }
}
