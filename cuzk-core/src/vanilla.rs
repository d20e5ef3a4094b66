//! Makes requests by sealing small sectors.
