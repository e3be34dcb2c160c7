//! The error types and codes of OpenFlow.

use std::fmt;

/// The type and code of an error message (OpenFlow 1.3.5, 7.4.4).
///
/// The constants have the names of the specification without `OFP`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode {
    /// The type (`OFPET_*`).
    pub error_type: u16,
    /// The code, whose meaning depends on the type.
    pub code: u16,
}

#[expect(missing_docs, reason = "the specification documents the codes under these names")]
impl ErrorCode {
    // OFPET_HELLO_FAILED
    pub const HFC_INCOMPATIBLE: Self = Self::new(0, 0);
    pub const HFC_EPERM: Self = Self::new(0, 1);

    // OFPET_BAD_REQUEST
    pub const BRC_BAD_VERSION: Self = Self::new(1, 0);
    pub const BRC_BAD_TYPE: Self = Self::new(1, 1);
    pub const BRC_BAD_MULTIPART: Self = Self::new(1, 2);
    pub const BRC_BAD_EXPERIMENTER: Self = Self::new(1, 3);
    pub const BRC_BAD_EXP_TYPE: Self = Self::new(1, 4);
    pub const BRC_EPERM: Self = Self::new(1, 5);
    pub const BRC_BAD_LEN: Self = Self::new(1, 6);
    pub const BRC_BUFFER_EMPTY: Self = Self::new(1, 7);
    pub const BRC_BUFFER_UNKNOWN: Self = Self::new(1, 8);
    pub const BRC_BAD_TABLE_ID: Self = Self::new(1, 9);
    pub const BRC_IS_SLAVE: Self = Self::new(1, 10);
    pub const BRC_BAD_PORT: Self = Self::new(1, 11);
    pub const BRC_BAD_PACKET: Self = Self::new(1, 12);
    pub const BRC_MULTIPART_BUFFER_OVERFLOW: Self = Self::new(1, 13);

    // OFPET_BAD_ACTION
    pub const BAC_BAD_TYPE: Self = Self::new(2, 0);
    pub const BAC_BAD_LEN: Self = Self::new(2, 1);
    pub const BAC_BAD_EXPERIMENTER: Self = Self::new(2, 2);
    pub const BAC_BAD_EXP_TYPE: Self = Self::new(2, 3);
    pub const BAC_BAD_OUT_PORT: Self = Self::new(2, 4);
    pub const BAC_BAD_ARGUMENT: Self = Self::new(2, 5);
    pub const BAC_EPERM: Self = Self::new(2, 6);
    pub const BAC_TOO_MANY: Self = Self::new(2, 7);
    pub const BAC_BAD_QUEUE: Self = Self::new(2, 8);
    pub const BAC_BAD_OUT_GROUP: Self = Self::new(2, 9);
    pub const BAC_MATCH_INCONSISTENT: Self = Self::new(2, 10);
    pub const BAC_UNSUPPORTED_ORDER: Self = Self::new(2, 11);
    pub const BAC_BAD_TAG: Self = Self::new(2, 12);
    pub const BAC_BAD_SET_TYPE: Self = Self::new(2, 13);
    pub const BAC_BAD_SET_LEN: Self = Self::new(2, 14);
    pub const BAC_BAD_SET_ARGUMENT: Self = Self::new(2, 15);

    // OFPET_BAD_INSTRUCTION
    pub const BIC_UNKNOWN_INST: Self = Self::new(3, 0);
    pub const BIC_UNSUP_INST: Self = Self::new(3, 1);
    pub const BIC_BAD_TABLE_ID: Self = Self::new(3, 2);
    pub const BIC_UNSUP_METADATA: Self = Self::new(3, 3);
    pub const BIC_UNSUP_METADATA_MASK: Self = Self::new(3, 4);
    pub const BIC_BAD_EXPERIMENTER: Self = Self::new(3, 5);
    pub const BIC_BAD_EXP_TYPE: Self = Self::new(3, 6);
    pub const BIC_BAD_LEN: Self = Self::new(3, 7);
    pub const BIC_EPERM: Self = Self::new(3, 8);

    // OFPET_BAD_MATCH
    pub const BMC_BAD_TYPE: Self = Self::new(4, 0);
    pub const BMC_BAD_LEN: Self = Self::new(4, 1);
    pub const BMC_BAD_TAG: Self = Self::new(4, 2);
    pub const BMC_BAD_DL_ADDR_MASK: Self = Self::new(4, 3);
    pub const BMC_BAD_NW_ADDR_MASK: Self = Self::new(4, 4);
    pub const BMC_BAD_WILDCARDS: Self = Self::new(4, 5);
    pub const BMC_BAD_FIELD: Self = Self::new(4, 6);
    pub const BMC_BAD_VALUE: Self = Self::new(4, 7);
    pub const BMC_BAD_MASK: Self = Self::new(4, 8);
    pub const BMC_BAD_PREREQ: Self = Self::new(4, 9);
    pub const BMC_DUP_FIELD: Self = Self::new(4, 10);
    pub const BMC_EPERM: Self = Self::new(4, 11);

    // OFPET_FLOW_MOD_FAILED
    pub const FMFC_UNKNOWN: Self = Self::new(5, 0);
    pub const FMFC_TABLE_FULL: Self = Self::new(5, 1);
    pub const FMFC_BAD_TABLE_ID: Self = Self::new(5, 2);
    pub const FMFC_OVERLAP: Self = Self::new(5, 3);
    pub const FMFC_EPERM: Self = Self::new(5, 4);
    pub const FMFC_BAD_TIMEOUT: Self = Self::new(5, 5);
    pub const FMFC_BAD_COMMAND: Self = Self::new(5, 6);
    pub const FMFC_BAD_FLAGS: Self = Self::new(5, 7);

    // OFPET_GROUP_MOD_FAILED
    pub const GMFC_GROUP_EXISTS: Self = Self::new(6, 0);
    pub const GMFC_INVALID_GROUP: Self = Self::new(6, 1);
    pub const GMFC_WEIGHT_UNSUPPORTED: Self = Self::new(6, 2);
    pub const GMFC_OUT_OF_GROUPS: Self = Self::new(6, 3);
    pub const GMFC_OUT_OF_BUCKETS: Self = Self::new(6, 4);
    pub const GMFC_CHAINING_UNSUPPORTED: Self = Self::new(6, 5);
    pub const GMFC_WATCH_UNSUPPORTED: Self = Self::new(6, 6);
    pub const GMFC_LOOP: Self = Self::new(6, 7);
    pub const GMFC_UNKNOWN_GROUP: Self = Self::new(6, 8);
    pub const GMFC_CHAINED_GROUP: Self = Self::new(6, 9);
    pub const GMFC_BAD_TYPE: Self = Self::new(6, 10);
    pub const GMFC_BAD_COMMAND: Self = Self::new(6, 11);
    pub const GMFC_BAD_BUCKET: Self = Self::new(6, 12);
    pub const GMFC_BAD_WATCH: Self = Self::new(6, 13);
    pub const GMFC_EPERM: Self = Self::new(6, 14);

    // OFPET_PORT_MOD_FAILED
    pub const PMFC_BAD_PORT: Self = Self::new(7, 0);
    pub const PMFC_BAD_HW_ADDR: Self = Self::new(7, 1);
    pub const PMFC_BAD_CONFIG: Self = Self::new(7, 2);
    pub const PMFC_BAD_ADVERTISE: Self = Self::new(7, 3);
    pub const PMFC_EPERM: Self = Self::new(7, 4);

    // OFPET_TABLE_MOD_FAILED
    pub const TMFC_BAD_TABLE: Self = Self::new(8, 0);
    pub const TMFC_BAD_CONFIG: Self = Self::new(8, 1);
    pub const TMFC_EPERM: Self = Self::new(8, 2);

    // OFPET_QUEUE_OP_FAILED
    pub const QOFC_BAD_PORT: Self = Self::new(9, 0);
    pub const QOFC_BAD_QUEUE: Self = Self::new(9, 1);
    pub const QOFC_EPERM: Self = Self::new(9, 2);

    // OFPET_SWITCH_CONFIG_FAILED
    pub const SCFC_BAD_FLAGS: Self = Self::new(10, 0);
    pub const SCFC_BAD_LEN: Self = Self::new(10, 1);
    pub const SCFC_EPERM: Self = Self::new(10, 2);

    // OFPET_ROLE_REQUEST_FAILED
    pub const RRFC_STALE: Self = Self::new(11, 0);
    pub const RRFC_UNSUP: Self = Self::new(11, 1);
    pub const RRFC_BAD_ROLE: Self = Self::new(11, 2);

    // OFPET_METER_MOD_FAILED
    pub const MMFC_UNKNOWN: Self = Self::new(12, 0);
    pub const MMFC_METER_EXISTS: Self = Self::new(12, 1);
    pub const MMFC_INVALID_METER: Self = Self::new(12, 2);
    pub const MMFC_UNKNOWN_METER: Self = Self::new(12, 3);
    pub const MMFC_BAD_COMMAND: Self = Self::new(12, 4);
    pub const MMFC_BAD_FLAGS: Self = Self::new(12, 5);
    pub const MMFC_BAD_RATE: Self = Self::new(12, 6);
    pub const MMFC_BAD_BURST: Self = Self::new(12, 7);
    pub const MMFC_BAD_BAND: Self = Self::new(12, 8);
    pub const MMFC_BAD_BAND_VALUE: Self = Self::new(12, 9);
    pub const MMFC_OUT_OF_METERS: Self = Self::new(12, 10);
    pub const MMFC_OUT_OF_BANDS: Self = Self::new(12, 11);

    // OFPET_TABLE_FEATURES_FAILED
    pub const TFFC_BAD_TABLE: Self = Self::new(13, 0);
    pub const TFFC_BAD_METADATA: Self = Self::new(13, 1);
    pub const TFFC_BAD_TYPE: Self = Self::new(13, 2);
    pub const TFFC_BAD_LEN: Self = Self::new(13, 3);
    pub const TFFC_BAD_ARGUMENT: Self = Self::new(13, 4);
    pub const TFFC_EPERM: Self = Self::new(13, 5);
}

/// All codes and their names.
const NAMES: &[(ErrorCode, &str)] = &[
    (ErrorCode::HFC_INCOMPATIBLE, "OFPHFC_INCOMPATIBLE"),
    (ErrorCode::HFC_EPERM, "OFPHFC_EPERM"),
    (ErrorCode::BRC_BAD_VERSION, "OFPBRC_BAD_VERSION"),
    (ErrorCode::BRC_BAD_TYPE, "OFPBRC_BAD_TYPE"),
    (ErrorCode::BRC_BAD_MULTIPART, "OFPBRC_BAD_MULTIPART"),
    (ErrorCode::BRC_BAD_EXPERIMENTER, "OFPBRC_BAD_EXPERIMENTER"),
    (ErrorCode::BRC_BAD_EXP_TYPE, "OFPBRC_BAD_EXP_TYPE"),
    (ErrorCode::BRC_EPERM, "OFPBRC_EPERM"),
    (ErrorCode::BRC_BAD_LEN, "OFPBRC_BAD_LEN"),
    (ErrorCode::BRC_BUFFER_EMPTY, "OFPBRC_BUFFER_EMPTY"),
    (ErrorCode::BRC_BUFFER_UNKNOWN, "OFPBRC_BUFFER_UNKNOWN"),
    (ErrorCode::BRC_BAD_TABLE_ID, "OFPBRC_BAD_TABLE_ID"),
    (ErrorCode::BRC_IS_SLAVE, "OFPBRC_IS_SLAVE"),
    (ErrorCode::BRC_BAD_PORT, "OFPBRC_BAD_PORT"),
    (ErrorCode::BRC_BAD_PACKET, "OFPBRC_BAD_PACKET"),
    (ErrorCode::BRC_MULTIPART_BUFFER_OVERFLOW, "OFPBRC_MULTIPART_BUFFER_OVERFLOW"),
    (ErrorCode::BAC_BAD_TYPE, "OFPBAC_BAD_TYPE"),
    (ErrorCode::BAC_BAD_LEN, "OFPBAC_BAD_LEN"),
    (ErrorCode::BAC_BAD_EXPERIMENTER, "OFPBAC_BAD_EXPERIMENTER"),
    (ErrorCode::BAC_BAD_EXP_TYPE, "OFPBAC_BAD_EXP_TYPE"),
    (ErrorCode::BAC_BAD_OUT_PORT, "OFPBAC_BAD_OUT_PORT"),
    (ErrorCode::BAC_BAD_ARGUMENT, "OFPBAC_BAD_ARGUMENT"),
    (ErrorCode::BAC_EPERM, "OFPBAC_EPERM"),
    (ErrorCode::BAC_TOO_MANY, "OFPBAC_TOO_MANY"),
    (ErrorCode::BAC_BAD_QUEUE, "OFPBAC_BAD_QUEUE"),
    (ErrorCode::BAC_BAD_OUT_GROUP, "OFPBAC_BAD_OUT_GROUP"),
    (ErrorCode::BAC_MATCH_INCONSISTENT, "OFPBAC_MATCH_INCONSISTENT"),
    (ErrorCode::BAC_UNSUPPORTED_ORDER, "OFPBAC_UNSUPPORTED_ORDER"),
    (ErrorCode::BAC_BAD_TAG, "OFPBAC_BAD_TAG"),
    (ErrorCode::BAC_BAD_SET_TYPE, "OFPBAC_BAD_SET_TYPE"),
    (ErrorCode::BAC_BAD_SET_LEN, "OFPBAC_BAD_SET_LEN"),
    (ErrorCode::BAC_BAD_SET_ARGUMENT, "OFPBAC_BAD_SET_ARGUMENT"),
    (ErrorCode::BIC_UNKNOWN_INST, "OFPBIC_UNKNOWN_INST"),
    (ErrorCode::BIC_UNSUP_INST, "OFPBIC_UNSUP_INST"),
    (ErrorCode::BIC_BAD_TABLE_ID, "OFPBIC_BAD_TABLE_ID"),
    (ErrorCode::BIC_UNSUP_METADATA, "OFPBIC_UNSUP_METADATA"),
    (ErrorCode::BIC_UNSUP_METADATA_MASK, "OFPBIC_UNSUP_METADATA_MASK"),
    (ErrorCode::BIC_BAD_EXPERIMENTER, "OFPBIC_BAD_EXPERIMENTER"),
    (ErrorCode::BIC_BAD_EXP_TYPE, "OFPBIC_BAD_EXP_TYPE"),
    (ErrorCode::BIC_BAD_LEN, "OFPBIC_BAD_LEN"),
    (ErrorCode::BIC_EPERM, "OFPBIC_EPERM"),
    (ErrorCode::BMC_BAD_TYPE, "OFPBMC_BAD_TYPE"),
    (ErrorCode::BMC_BAD_LEN, "OFPBMC_BAD_LEN"),
    (ErrorCode::BMC_BAD_TAG, "OFPBMC_BAD_TAG"),
    (ErrorCode::BMC_BAD_DL_ADDR_MASK, "OFPBMC_BAD_DL_ADDR_MASK"),
    (ErrorCode::BMC_BAD_NW_ADDR_MASK, "OFPBMC_BAD_NW_ADDR_MASK"),
    (ErrorCode::BMC_BAD_WILDCARDS, "OFPBMC_BAD_WILDCARDS"),
    (ErrorCode::BMC_BAD_FIELD, "OFPBMC_BAD_FIELD"),
    (ErrorCode::BMC_BAD_VALUE, "OFPBMC_BAD_VALUE"),
    (ErrorCode::BMC_BAD_MASK, "OFPBMC_BAD_MASK"),
    (ErrorCode::BMC_BAD_PREREQ, "OFPBMC_BAD_PREREQ"),
    (ErrorCode::BMC_DUP_FIELD, "OFPBMC_DUP_FIELD"),
    (ErrorCode::BMC_EPERM, "OFPBMC_EPERM"),
    (ErrorCode::FMFC_UNKNOWN, "OFPFMFC_UNKNOWN"),
    (ErrorCode::FMFC_TABLE_FULL, "OFPFMFC_TABLE_FULL"),
    (ErrorCode::FMFC_BAD_TABLE_ID, "OFPFMFC_BAD_TABLE_ID"),
    (ErrorCode::FMFC_OVERLAP, "OFPFMFC_OVERLAP"),
    (ErrorCode::FMFC_EPERM, "OFPFMFC_EPERM"),
    (ErrorCode::FMFC_BAD_TIMEOUT, "OFPFMFC_BAD_TIMEOUT"),
    (ErrorCode::FMFC_BAD_COMMAND, "OFPFMFC_BAD_COMMAND"),
    (ErrorCode::FMFC_BAD_FLAGS, "OFPFMFC_BAD_FLAGS"),
    (ErrorCode::GMFC_GROUP_EXISTS, "OFPGMFC_GROUP_EXISTS"),
    (ErrorCode::GMFC_INVALID_GROUP, "OFPGMFC_INVALID_GROUP"),
    (ErrorCode::GMFC_WEIGHT_UNSUPPORTED, "OFPGMFC_WEIGHT_UNSUPPORTED"),
    (ErrorCode::GMFC_OUT_OF_GROUPS, "OFPGMFC_OUT_OF_GROUPS"),
    (ErrorCode::GMFC_OUT_OF_BUCKETS, "OFPGMFC_OUT_OF_BUCKETS"),
    (ErrorCode::GMFC_CHAINING_UNSUPPORTED, "OFPGMFC_CHAINING_UNSUPPORTED"),
    (ErrorCode::GMFC_WATCH_UNSUPPORTED, "OFPGMFC_WATCH_UNSUPPORTED"),
    (ErrorCode::GMFC_LOOP, "OFPGMFC_LOOP"),
    (ErrorCode::GMFC_UNKNOWN_GROUP, "OFPGMFC_UNKNOWN_GROUP"),
    (ErrorCode::GMFC_CHAINED_GROUP, "OFPGMFC_CHAINED_GROUP"),
    (ErrorCode::GMFC_BAD_TYPE, "OFPGMFC_BAD_TYPE"),
    (ErrorCode::GMFC_BAD_COMMAND, "OFPGMFC_BAD_COMMAND"),
    (ErrorCode::GMFC_BAD_BUCKET, "OFPGMFC_BAD_BUCKET"),
    (ErrorCode::GMFC_BAD_WATCH, "OFPGMFC_BAD_WATCH"),
    (ErrorCode::GMFC_EPERM, "OFPGMFC_EPERM"),
    (ErrorCode::PMFC_BAD_PORT, "OFPPMFC_BAD_PORT"),
    (ErrorCode::PMFC_BAD_HW_ADDR, "OFPPMFC_BAD_HW_ADDR"),
    (ErrorCode::PMFC_BAD_CONFIG, "OFPPMFC_BAD_CONFIG"),
    (ErrorCode::PMFC_BAD_ADVERTISE, "OFPPMFC_BAD_ADVERTISE"),
    (ErrorCode::PMFC_EPERM, "OFPPMFC_EPERM"),
    (ErrorCode::TMFC_BAD_TABLE, "OFPTMFC_BAD_TABLE"),
    (ErrorCode::TMFC_BAD_CONFIG, "OFPTMFC_BAD_CONFIG"),
    (ErrorCode::TMFC_EPERM, "OFPTMFC_EPERM"),
    (ErrorCode::QOFC_BAD_PORT, "OFPQOFC_BAD_PORT"),
    (ErrorCode::QOFC_BAD_QUEUE, "OFPQOFC_BAD_QUEUE"),
    (ErrorCode::QOFC_EPERM, "OFPQOFC_EPERM"),
    (ErrorCode::SCFC_BAD_FLAGS, "OFPSCFC_BAD_FLAGS"),
    (ErrorCode::SCFC_BAD_LEN, "OFPSCFC_BAD_LEN"),
    (ErrorCode::SCFC_EPERM, "OFPSCFC_EPERM"),
    (ErrorCode::RRFC_STALE, "OFPRRFC_STALE"),
    (ErrorCode::RRFC_UNSUP, "OFPRRFC_UNSUP"),
    (ErrorCode::RRFC_BAD_ROLE, "OFPRRFC_BAD_ROLE"),
    (ErrorCode::MMFC_UNKNOWN, "OFPMMFC_UNKNOWN"),
    (ErrorCode::MMFC_METER_EXISTS, "OFPMMFC_METER_EXISTS"),
    (ErrorCode::MMFC_INVALID_METER, "OFPMMFC_INVALID_METER"),
    (ErrorCode::MMFC_UNKNOWN_METER, "OFPMMFC_UNKNOWN_METER"),
    (ErrorCode::MMFC_BAD_COMMAND, "OFPMMFC_BAD_COMMAND"),
    (ErrorCode::MMFC_BAD_FLAGS, "OFPMMFC_BAD_FLAGS"),
    (ErrorCode::MMFC_BAD_RATE, "OFPMMFC_BAD_RATE"),
    (ErrorCode::MMFC_BAD_BURST, "OFPMMFC_BAD_BURST"),
    (ErrorCode::MMFC_BAD_BAND, "OFPMMFC_BAD_BAND"),
    (ErrorCode::MMFC_BAD_BAND_VALUE, "OFPMMFC_BAD_BAND_VALUE"),
    (ErrorCode::MMFC_OUT_OF_METERS, "OFPMMFC_OUT_OF_METERS"),
    (ErrorCode::MMFC_OUT_OF_BANDS, "OFPMMFC_OUT_OF_BANDS"),
    (ErrorCode::TFFC_BAD_TABLE, "OFPTFFC_BAD_TABLE"),
    (ErrorCode::TFFC_BAD_METADATA, "OFPTFFC_BAD_METADATA"),
    (ErrorCode::TFFC_BAD_TYPE, "OFPTFFC_BAD_TYPE"),
    (ErrorCode::TFFC_BAD_LEN, "OFPTFFC_BAD_LEN"),
    (ErrorCode::TFFC_BAD_ARGUMENT, "OFPTFFC_BAD_ARGUMENT"),
    (ErrorCode::TFFC_EPERM, "OFPTFFC_EPERM"),
];

impl ErrorCode {
    /// The error of a type and a code.
    #[must_use]
    pub const fn new(error_type: u16, code: u16) -> Self {
        Self { error_type, code }
    }

    /// The name in the specification; `None` if it has no such error.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(code, _)| *code == self).map(|(_, name)| *name)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "OpenFlow error of type {} with code {}", self.error_type, self.code),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_one_name() {
        for (at, (code, name)) in NAMES.iter().enumerate() {
            assert_eq!(code.to_string(), *name);
            assert!(NAMES[..at].iter().all(|(other, taken)| other < code && taken != name), "{name}");
        }
        assert_eq!(ErrorCode::new(0xffff, 2).to_string(), "OpenFlow error of type 65535 with code 2");
    }
}
