//! Sums of `Change::Add`.
//!
//! Owns: the addition that the database does when it joins changes of one record.
//! Does not own: the meaning of the sums.
//! Invariants: the order of additions does not matter. An absent record counts as 0.

use bytes::Bytes;
use slatedb::{MergeOperator, MergeOperatorError};

/// Adds numbers of 8 big-endian bytes.
pub(crate) struct Sum;

impl MergeOperator for Sum {
    fn merge(&self, key: &Bytes, existing: Option<Bytes>, operand: Bytes) -> Result<Bytes, MergeOperatorError> {
        let before = existing.map_or(Ok(0), |existing| number(key, &existing))?;
        let sum = before.wrapping_add(number(key, &operand)?);
        Ok(Bytes::copy_from_slice(&sum.to_be_bytes()))
    }
}

fn number(key: &Bytes, value: &Bytes) -> Result<i64, MergeOperatorError> {
    let bytes = value.as_ref().try_into().map_err(|_| MergeOperatorError::Callback {
        message: format!("the record {key:?} has {} bytes instead of the 8 of a sum", value.len()),
    })?;
    Ok(i64::from_be_bytes(bytes))
}
