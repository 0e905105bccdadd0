
R

shop.protoshop"6
Step
policy (	Rpolicy
reward (Rrewardbproto3