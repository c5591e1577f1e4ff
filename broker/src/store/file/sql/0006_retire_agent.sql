-- The RPC RemoveAgent is called RetireAgent: a repeated request is looked up under the new name.

UPDATE request SET rpc = 'RetireAgent' WHERE rpc = 'RemoveAgent';
