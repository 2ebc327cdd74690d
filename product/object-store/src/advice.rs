//! Failures of an opening as errors with advice.
//!
//! Owns: the translation.
//! Does not own: the texts (`error`), the meaning of a store's answers (`failure`).
//! Invariants: none beyond its types.

use crate::address::Address;
use crate::error::StoreError;
use crate::failure::Failure;

pub(crate) fn advice(url: &str, address: &Address, failure: Failure) -> StoreError {
    let url = url.to_owned();
    match failure {
        // The last source of keys is the instance's own address, which nothing answers elsewhere.
        Failure::Busy(why) | Failure::Unknown(why) if why.contains("169.254.169.254") => {
            StoreError::Denied { url, why: "there are no keys".to_owned() }
        }
        Failure::Busy(why) | Failure::Unknown(why) => StoreError::Unreachable { url, why },
        Failure::Full(why) | Failure::Beyond(why) | Failure::Over(why) => StoreError::Refused { url, why },
        Failure::Missing | Failure::NoBucket => StoreError::NoBucket { url, bucket: address.bucket() },
        Failure::Denied(why) => StoreError::Denied { url, why },
        Failure::Region(why) => StoreError::Region { url, why },
        Failure::Refused(why) => StoreError::Refused { url, why },
    }
}
