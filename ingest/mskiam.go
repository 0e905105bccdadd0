package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/aws_msk_iam_v2"
)

// mskIAM authenticates to Amazon MSK with IAM. The region and credentials are those that the AWS SDK finds. Each
// connection signs with valid credentials, so temporary credentials of a role are renewed.
func mskIAM() (sasl.Mechanism, error) {
	aws, err := config.LoadDefaultConfig(context.Background()) // reads the environment and files, without connecting to anything
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration for Kafka: %w", err)
	}
	if aws.Region == "" {
		return nil, errors.New("the AWS region for Kafka is unknown: set AWS_REGION")
	}
	return aws_msk_iam_v2.NewMechanism(aws), nil
}
