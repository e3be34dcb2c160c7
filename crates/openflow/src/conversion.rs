//! Error codes of refusals by the flow tables, groups and meters.

use flow_table::{ActionError, FlowModError, GroupError, MeterError};

use crate::ErrorCode;

impl From<ActionError> for ErrorCode {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::TooMany => Self::BAC_TOO_MANY,
            ActionError::NotSettable(_) => Self::BAC_BAD_SET_TYPE,
            ActionError::TooWide(_) => Self::BAC_BAD_SET_ARGUMENT,
            ActionError::BadEthernetType(_) => Self::BAC_BAD_ARGUMENT,
            ActionError::OnlyApplied => Self::BAC_BAD_EXP_TYPE,
            // Missing fields and headers, and what the enumeration may get.
            _ => Self::BAC_MATCH_INCONSISTENT,
        }
    }
}

impl From<FlowModError> for ErrorCode {
    fn from(error: FlowModError) -> Self {
        match error {
            FlowModError::BadTable => Self::FMFC_BAD_TABLE_ID,
            FlowModError::TooManyEntries { .. }
            | FlowModError::TooManyMasks { .. }
            | FlowModError::TooManyBytes { .. } => Self::FMFC_TABLE_FULL,
            FlowModError::Overlap => Self::FMFC_OVERLAP,
            FlowModError::OtherOwner => Self::FMFC_EPERM,
            FlowModError::BadTimeout => Self::FMFC_BAD_TIMEOUT,
            FlowModError::BadGoto { .. } => Self::BIC_BAD_TABLE_ID,
            FlowModError::Action(error) => error.into(),
            _ => Self::FMFC_UNKNOWN,
        }
    }
}

impl From<GroupError> for ErrorCode {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::Exists => Self::GMFC_GROUP_EXISTS,
            GroupError::Unknown => Self::GMFC_UNKNOWN_GROUP,
            GroupError::TooManyGroups => Self::GMFC_OUT_OF_GROUPS,
            GroupError::TooManyBuckets => Self::GMFC_OUT_OF_BUCKETS,
            GroupError::Loop => Self::GMFC_LOOP,
            GroupError::TooDeep => Self::GMFC_CHAINING_UNSUPPORTED,
            GroupError::Chained => Self::GMFC_CHAINED_GROUP,
            GroupError::Action(error) => error.into(),
            // Invalid, a missing group, and what the enumeration may get.
            _ => Self::GMFC_INVALID_GROUP,
        }
    }
}

impl From<MeterError> for ErrorCode {
    fn from(error: MeterError) -> Self {
        match error {
            MeterError::Exists => Self::MMFC_METER_EXISTS,
            MeterError::Unknown => Self::MMFC_UNKNOWN_METER,
            MeterError::TooManyMeters => Self::MMFC_OUT_OF_METERS,
            MeterError::TooManyBands => Self::MMFC_OUT_OF_BANDS,
            MeterError::BadRate => Self::MMFC_BAD_RATE,
            MeterError::BadLevel => Self::MMFC_BAD_BAND_VALUE,
            _ => Self::MMFC_UNKNOWN,
        }
    }
}
