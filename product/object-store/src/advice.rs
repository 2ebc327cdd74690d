//! Failures of an opening as errors with advice.
//!
//! Owns: the translation.
//! Does not own: the texts (`error`), the meaning of a store's answers (`failure`).
//! Invariants: none beyond its types.

use crate::address::Address;
use crate::error::StoreError;
use crate::failure::RequestFailure;

pub(crate) fn advice(url: &str, address: &Address, failure: RequestFailure) -> StoreError {
    let url = url.to_owned();
    match failure {
        // The last source of keys is the instance's own address, which nothing answers elsewhere.
        RequestFailure::Busy(why) | RequestFailure::Unknown(why) if why.contains("169.254.169.254") => {
            StoreError::Denied { url, why: "there are no keys".to_owned() }
        }
        RequestFailure::Busy(why) | RequestFailure::Unknown(why) => StoreError::Unreachable { url, why },
        RequestFailure::Full(why) | RequestFailure::Beyond(why) | RequestFailure::Over(why) => {
            StoreError::Refused { url, why }
        }
        RequestFailure::Missing | RequestFailure::NoBucket => StoreError::NoBucket { url, bucket: address.bucket() },
        RequestFailure::Denied(why) => StoreError::Denied { url, why },
        RequestFailure::Region(why) => StoreError::Region { url, why },
        RequestFailure::Refused(why) => StoreError::Refused { url, why },
    }
}
