//! An operator follows its sales, disputes and limits.
