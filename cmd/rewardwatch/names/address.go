package names

// LocalAddress is the default address on which the service listens and which commands call.
const LocalAddress = "127.0.0.1:9464"
