//! Failures of an opening as errors with advice.
//!
//! Owns: the translation.
//! Does not own: the texts (`error`), the meaning of a store's answers (`failure`).
//! Invariants: a failure has the same words in each command. `StoreError::Unreachable` is only said where nothing
//! answered.

use std::error::Error;

use slatedb::{CloseReason, ErrorKind};

use crate::address::Address;
use crate::error::StoreError;
use crate::failure::{Over, RequestFailure, Told, chain};

/// The services of an instance that give keys.
const INSTANCE: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

pub(crate) fn advice(url: &str, address: &Address, failure: RequestFailure) -> StoreError {
    let url = url.to_owned();
    match failure {
        RequestFailure::Over(failure) => advice(&url, address, *failure),
        // The last source of keys is the instance's own address, which nothing answers elsewhere.
        RequestFailure::Busy(Told::ByConnection(why)) | RequestFailure::Unknown(Told::ByConnection(why))
            if INSTANCE.iter().any(|host| why.contains(host)) =>
        {
            StoreError::Denied { url, why: "there are no keys".to_owned() }
        }
        RequestFailure::Busy(told) | RequestFailure::Unknown(told) => match told {
            Told::ByStore(why) => StoreError::Failing { url, why },
            Told::ByConnection(why) => StoreError::Unreachable { url, why },
        },
        RequestFailure::Full(why) | RequestFailure::Beyond(why) | RequestFailure::Refused(why) => {
            StoreError::Refused { url, why }
        }
        RequestFailure::Missing | RequestFailure::NoBucket => StoreError::NoBucket { url, bucket: address.bucket() },
        RequestFailure::Denied(why) => StoreError::Denied { url, why },
        RequestFailure::Region(why) => StoreError::Region { url, why },
    }
}

/// The meaning of an error of the database while it is opened.
pub(crate) fn of_records(url: &str, address: &Address, error: &slatedb::Error) -> StoreError {
    if let Some(failure) = ended(error) {
        return advice(url, address, failure.clone());
    }
    let (url, why) = (url.to_owned(), chain(error));
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => StoreError::Fenced { url },
        ErrorKind::Data => StoreError::Format { url, why },
        ErrorKind::Unavailable => StoreError::Failing { url, why },
        _ => StoreError::Refused { url, why },
    }
}

/// The failure of the request behind an error of the database, if it was repeated for long enough.
fn ended(error: &slatedb::Error) -> Option<&RequestFailure> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(over) = error.downcast_ref::<Over>() {
            return Some(&over.failure);
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
