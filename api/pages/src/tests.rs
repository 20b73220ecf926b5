mod charts;
mod document;
mod hostile;
mod html;
mod shape;
mod words;
