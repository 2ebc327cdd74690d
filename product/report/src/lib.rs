//! The output of the commands: tables, rows of JSON, plots, pages, failures and plain lines.
//!
//! Owns: units, aligned tables (`table`), one JSON object a row (`row`), SVG plots (`plot`, `bars`), self-contained
//! HTML pages (`html`). Also owns: the abilities of a terminal (`terminal`), printing (`output`), exit codes
//! (`failure`), files that are read whole (`bounded_file`), times and sizes that people write (`quantity`).
//! Does not own: the figures and the words about them; callers bring both.
//! Invariants: imports none of our crates. All text that comes in is escaped before it goes into HTML and SVG, or to a
//! terminal. A page loads nothing. The same figures give the same text.

#![forbid(unsafe_code)]

mod axis;
mod bars;
pub mod bounded_file;
pub mod command_line;
mod entries;
pub mod failure;
mod html;
mod markup;
pub mod output;
mod plot;
pub mod quantity;
mod row;
mod sheet;
mod table;
pub mod terminal;
pub mod units;

pub use axis::{Axis, Quantity};
pub use bars::{Bar, Bars};
pub use entries::{entries, listing};
pub use html::{Drawing, HtmlPage};
pub use plot::{Plot, Series, Shape};
pub use row::{Fields, FigureSource, Row};
pub use table::{Align, Cell, Table};
