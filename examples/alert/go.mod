module example.invalid/hive/examples/alert

go 1.24.0

require example.invalid/hive/clients/go v0.1.0

replace example.invalid/hive/clients/go => ../../clients/go
